package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/vxswitch/vxswitch/api"
)

const (
	messages = "urn:ietf:params:xml:ns:netconf:base:1.0" // namespace
	base     = "urn:ietf:params:netconf:base:1."         // capability, but for its last digit
)

var capabilities = []string{base + "0", base + "1", "urn:ietf:params:netconf:capability:candidate:1.0", "urn:ietf:params:netconf:capability:validate:1.1", namespace}

// A store is the configuration of a node as datastores: what runs, and the candidate that all sessions share.
type store struct {
	node   *api.Client
	schema *schema

	mu        sync.Mutex
	candidate map[string]any // nil: what runs
	tag       string         // of what runs when the candidate was begun
	locks     [2]uint32      // sessions that have locked what runs, and the candidate; 0 = none
}

// running asks for the configuration.
func (s *store) running(ctx context.Context) (c map[string]any, tag string, err error) {
	text, tag, err := s.node.Config(ctx)
	if err == nil {
		err = decode(text, &c)
	}
	return c, tag, err
}

// decode reads JSON, with numbers as they are written.
func decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// unlock ends the locks of a session, and drops a candidate that it had locked.
func (s *store) unlock(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[1] == id {
		s.candidate = nil
	}
	for i := range s.locks {
		if s.locks[i] == id {
			s.locks[i] = 0
		}
	}
}

// A session is one client.
type session struct {
	id     uint32
	store  *store
	frames *frames
}

func (x *session) run() {
	var list strings.Builder
	for _, c := range capabilities {
		fmt.Fprintf(&list, "<capability>%s</capability>", c)
	}
	hello := fmt.Sprintf(`<hello xmlns="%s"><capabilities>%s</capabilities><session-id>%d</session-id></hello>`, messages, list.String(), x.id)
	if x.frames.write([]byte(xml.Header+hello)) != nil {
		return
	}
	for first := true; ; first = false {
		text, err := x.frames.read()
		if err != nil {
			return
		}
		var n node
		if xml.Unmarshal(text, &n) != nil || first != (n.name() == "hello") {
			return
		}
		if first {
			list := n.child("capabilities")
			x.frames.chunked = list != nil && slices.ContainsFunc(list.Nodes, func(c node) bool { return c.text() == base+"1" })
			continue
		}
		reply, last := x.answer(&n)
		if x.frames.write(reply) != nil || last {
			return
		}
	}
}

// answer executes an RPC.
func (x *session) answer(rpc *node) (reply []byte, last bool) {
	var data []node
	err := error(&rpcError{"malformed-message", "", "an rpc has one operation"})
	if rpc.name() == "rpc" && len(rpc.Nodes) == 1 {
		op := &rpc.Nodes[0]
		last = op.name() == "close-session"
		data, err = x.execute(op)
	}
	out := node{XMLName: xml.Name{Local: "rpc-reply"}, Attrs: []xml.Attr{xmlns(messages)}}
	for _, a := range rpc.Attrs {
		if a.Name.Local != "xmlns" && a.Name.Space == "" {
			out.Attrs = append(out.Attrs, a)
		}
	}
	switch {
	case err != nil:
		out.Nodes = errorNodes(err)
	case data != nil:
		out.Nodes = []node{{XMLName: xml.Name{Local: "data"}, Nodes: data}}
	default:
		out.Nodes = []node{{XMLName: xml.Name{Local: "ok"}}}
	}
	reply, err = xml.Marshal(out)
	if err != nil {
		return nil, true
	}
	return reply, last
}

// errorNodes returns the elements of an error: of the node's one for each wrong setting.
func errorNodes(err error) (list []node) {
	e := &rpcError{tag: "operation-failed", text: err.Error()}
	errors.As(err, &e)
	lines := []string{e.text}
	if of := (*api.Error)(nil); errors.As(err, &of) && len(of.Lines) > 0 {
		lines = of.Lines
	}
	leaf := func(name, text string) node { return node{XMLName: xml.Name{Local: name}, Text: text} }
	for _, text := range lines {
		n := node{XMLName: xml.Name{Local: "rpc-error"}, Nodes: []node{leaf("error-type", "application"), leaf("error-tag", e.tag), leaf("error-severity", "error")}}
		if e.path != "" {
			n.Nodes = append(n.Nodes, node{XMLName: xml.Name{Local: "error-info"}, Nodes: []node{leaf("bad-element", e.path)}})
		}
		n.Nodes = append(n.Nodes, leaf("error-message", text))
		list = append(list, n)
	}
	return list
}

// execute executes an operation; data is nil if its answer is "ok".
func (x *session) execute(op *node) (data []node, err error) {
	s, ctx := x.store, context.Background()
	s.mu.Lock()
	defer s.mu.Unlock()
	which := 0 // what runs
	for _, name := range []string{"source", "target"} {
		if at := op.child(name); at != nil && at.child("candidate") != nil {
			which = 1
		}
	}
	for _, at := range changed(op.name(), which) {
		if holder := s.locks[at]; holder != 0 && holder != x.id {
			return nil, &rpcError{"lock-denied", "", fmt.Sprintf("session %d has the lock", holder)}
		}
	}
	switch op.name() {
	case "get", "get-config":
		return s.read(ctx, op, which)
	case "edit-config":
		if which == 0 {
			return nil, &rpcError{"operation-not-supported", "", "target: must be candidate, which commit makes what runs"}
		}
		return nil, s.edit(ctx, op)
	case "validate", "commit":
		if s.candidate == nil {
			return nil, nil
		}
		text, err := json.Marshal(s.candidate)
		if err == nil {
			_, err = s.node.SetConfig(ctx, text, &api.SetOptions{DryRun: op.name() == "validate", Tag: s.tag})
		}
		if err == nil && op.name() == "commit" {
			s.candidate = nil
		}
		return nil, err
	case "discard-changes":
		s.candidate = nil
	case "lock":
		if s.locks[which] != 0 {
			return nil, &rpcError{"lock-denied", "", "this session has the lock already"}
		}
		if which == 1 && s.candidate != nil {
			return nil, &rpcError{"lock-denied", "", "the candidate has changes: commit or discard-changes first"}
		}
		s.locks[which] = x.id
	case "unlock":
		if s.locks[which] == 0 {
			return nil, &rpcError{"operation-failed", "", "nobody has the lock"}
		}
		s.locks[which] = 0
	case "close-session":
	default:
		return nil, &rpcError{"operation-not-supported", op.name(), fmt.Sprintf("%s: no such operation", op.name())}
	}
	return nil, nil
}

// changed returns the datastores that an operation needs for itself; which is its target.
func changed(op string, which int) []int {
	switch op {
	case "commit":
		return []int{0, 1}
	case "discard-changes":
		return []int{1}
	case "edit-config", "lock", "unlock":
		return []int{which}
	}
	return nil
}

// read answers get and get-config. Of the state, get has the FDB. s.mu is held.
func (s *store) read(ctx context.Context, op *node, which int) ([]node, error) {
	config := s.candidate
	if which == 0 || config == nil {
		var err error
		if config, _, err = s.running(ctx); err != nil {
			return nil, err
		}
	}
	list := s.schema.xml("vxswitch", config)
	if op.name() == "get" {
		entries, err := s.node.FDB(ctx, nil)
		if err != nil {
			return nil, err
		}
		var table []any
		text, err := json.Marshal(entries)
		if err == nil {
			err = decode(text, &table)
		}
		if err != nil {
			return nil, err
		}
		list[0].Nodes = append(list[0].Nodes, (*schema)(nil).xml("fdb", table)...)
	}
	if f := op.child("filter"); f != nil {
		list = pick(list, f.Nodes)
	}
	for i := range list {
		list[i].Attrs = []xml.Attr{xmlns(namespace)}
	}
	return append([]node{}, list...), nil
}

// begun returns what an edit begins with, and its tag: a copy of the candidate, or what runs. s.mu is held.
func (s *store) begun(ctx context.Context) (c map[string]any, tag string, err error) {
	if s.candidate == nil {
		return s.running(ctx)
	}
	text, err := json.Marshal(s.candidate)
	if err == nil {
		err = decode(text, &c)
	}
	return c, s.tag, err
}

// edit changes the candidate, or leaves it as it is. s.mu is held.
func (s *store) edit(ctx context.Context, op *node) error {
	c, tag, err := s.begun(ctx)
	if err != nil {
		return err
	}
	config := op.child("config")
	if config == nil || len(config.Nodes) != 1 || config.Nodes[0].XMLName != (xml.Name{Space: namespace, Local: "vxswitch"}) {
		return &rpcError{"unknown-element", "config", "config: must have one element vxswitch of " + namespace}
	}
	how := op.child("default-operation").text()
	if how == "" {
		how = "merge"
	}
	switch how {
	case "merge", "none":
	case "replace":
		c = map[string]any{}
	default:
		return &rpcError{"invalid-value", "default-operation", fmt.Sprintf("default-operation %q: must be merge, replace or none", how)}
	}
	if err := s.schema.merge(c, config.Nodes[0].Nodes, how); err != nil {
		return err
	}
	s.candidate, s.tag = c, tag
	return nil
}
