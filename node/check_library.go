package node

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// What the packages refuse whose settings these are is asked of them, with the settings that
// they get when the configuration is applied. The error is theirs.

// asks asks about a part of the configuration that is of the type of at, unless a value in it
// could not be read. What is wrong with the part as a whole follows from a value that is wrong,
// if there is one.
func (k *checker) asks(key string, at any, about func() error) {
	if k.unread[key] {
		return
	}
	err := about()
	var errs setting.Errors
	if err != nil && !errors.As(err, &errs) && !k.wrong[key] {
		_, text, _ := strings.Cut(err.Error(), ": ")
		k.fail(key, "%s", text)
	}
	for _, e := range errs {
		k.fail(join(key, keyOf(reflect.TypeOf(at), e.Field)), "%s", e.Text)
	}
}

// keyOf returns the key of a field in a type: storm.unknown for Storm.UnknownUnicast. What has
// none has that of what it is in.
func keyOf(t reflect.Type, path string) (key string) {
	for name := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(name, "[")
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			break
		}
		f, _ := t.FieldByName(name)
		word, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if word == "-" || word == "" && !f.Anonymous {
			break
		}
		if t = f.Type; word != "" {
			key = join(key, word)
		}
		if name, quoted := strings.CutPrefix(index, `"`); quoted { // of a map
			name, index, indexed = strings.Cut(name, `"]`)
			key, index, indexed = join(key, name), strings.TrimPrefix(index, "["), indexed && index != ""
		}
		if indexed {
			key += "[" + index
		}
	}
	return key
}

func (k *checker) segmentSettings(key string, g *Segment) {
	k.asks(key, *g, g.VSIConfig.Check)
	for i := range g.Members {
		m := &g.Members[i]
		at := m.attach()
		k.asks(fmt.Sprintf("%s.members[%d]", key, i), *m, func() error { return at.Check(false) })
	}
	for i, x := range g.in() {
		k.asks(fmt.Sprintf("%s.tunnels[%d]", key, i), x, func() error { return x.AttachConfig.Check(true) })
	}
	if n := g.Neighbours; n != nil {
		for i, x := range n.Static {
			k.asks(fmt.Sprintf("%s.neighbours.static[%d]", key, i), x, func() error { return arp.CheckNeighbour(x.IP, x.MAC) })
		}
	}
	if g.Neighbours != nil || g.ethernet() {
		k.asks(key+".neighbours", Neighbours{}, g.table().Check)
		cfg := g.responder(func(frame.MAC) (frame.Dest, bool) { return 0, false })
		cfg.Inject, cfg.Notify = func(*frame.Frame) bool { return false }, func(frame.Event) {}
		k.asks(key+".neighbours", Neighbours{}, cfg.Check)
		for i := range g.Members {
			at, m := fmt.Sprintf("%s.members[%d].neighbourMode", key, i), g.Members[i].NeighbourMode
			if m == nil || k.wrong[at] || k.wrong[key+".neighbours"] {
				continue
			}
			cfg.Mode = *m
			var errs setting.Errors
			if errors.As(cfg.Check(), &errs) {
				k.fail(at, "%v: %s: %s", *m, keyOf(reflect.TypeFor[Neighbours](), errs[0].Field), errs[0].Text)
			}
		}
	}
}

func (k *checker) gatewaySettings(key string, g *Segment) {
	w := g.Gateway
	cfg := g.iface(new(arp.Responder), func(frame.Dest, *frame.Frame) bool { return false })
	if !g.ethernet() {
		cfg.Neighbours, cfg.Port = nil, frame.NewDest(1, 0)
	}
	k.asks(key, *w, cfg.Check)
	for i, p := range w.Addresses {
		if g.ethernet() {
			k.asks(fmt.Sprintf("%s.addresses[%d]", key, i), p, func() error { return arp.CheckNeighbour(p.Addr(), w.MAC) })
		}
	}
}
