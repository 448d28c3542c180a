package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// A message is all that one agent has in the segment. It is one line of JSON.
type message struct {
	VTEP  netip.AddrPort `json:"vtep"`
	VNI   frame.VNI      `json:"vni"`
	Hosts []host         `json:"hosts"`
}

const (
	alive   = 2 * time.Second // between messages, if nothing changes
	silence = 3 * alive       // after which an agent is gone
	retry   = time.Second
	longest = 16 << 20 // bytes of a message
)

// serve tells the other agents, when they connect, what is here.
func (a *agent) serve(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		from, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		if !slices.ContainsFunc(a.peers, func(p string) bool { return strings.HasPrefix(p, net.JoinHostPort(from, "")) }) {
			c.Close()
			continue
		}
		a.running.Go(func() {
			defer c.Close()
			a.tell(ctx, c)
		})
	}
}

// tell sends the hosts now and whenever they have changed. Who reads slowly misses what was in between.
func (a *agent) tell(ctx context.Context, c net.Conn) {
	defer context.AfterFunc(ctx, func() { c.Close() })()
	for {
		a.mu.Lock()
		m := message{VTEP: a.vtep, VNI: a.segment.VNI(), Hosts: slices.SortedFunc(maps.Keys(a.hosts), host.compare)}
		changed := a.changed
		a.mu.Unlock()
		c.SetWriteDeadline(time.Now().Add(silence))
		if json.NewEncoder(c).Encode(m) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(alive):
		}
	}
}

// follow writes what an agent says into the tables, as long as it says something.
func (a *agent) follow(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		err := a.hear(ctx, addr)
		a.program(addr, nil)
		slog.Warn("agent: no longer heard", "peer", addr, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

func (a *agent) hear(ctx context.Context, addr string) error {
	c, err := (&net.Dialer{Timeout: silence}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, longest)
	var last []byte
	for c.SetReadDeadline(time.Now().Add(silence)); lines.Scan(); c.SetReadDeadline(time.Now().Add(silence)) {
		if bytes.Equal(lines.Bytes(), last) {
			continue
		}
		last = bytes.Clone(lines.Bytes())
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		if m.VNI != a.segment.VNI() {
			return errors.New("it has another VNI")
		}
		a.program(addr, rows(m))
		slog.Info("agent: heard", "peer", addr, "hosts", len(m.Hosts))
	}
	return lines.Err()
}

// rows says what a message means to the tables: the VTEP gets what is flooded, and the hosts are behind it. A host that has moved
// is learned by its first broadcast, and then the agent that had it says so no more: until then the row waits there.
func rows(m message) []control.Row {
	list := []control.Row{control.Flood{VNI: m.VNI, VTEP: m.VTEP}}
	for _, h := range m.Hosts {
		list = append(list, control.MAC{VNI: m.VNI, MAC: h.MAC, IP: h.IP, VTEP: m.VTEP})
	}
	return list
}

// program makes the rows those of an agent. As a snapshot: rows that are as they were are not written again, and others of the
// agent are removed. Loose: what has no place yet waits for it.
func (a *agent) program(agent string, rows []control.Row) {
	err := a.node.Program(agent, control.Update{Snapshot: true, Loose: true, Add: rows})
	if err != nil && !errors.Is(err, net.ErrClosed) {
		slog.Warn("agent: rows refused", "peer", agent, "err", err)
	}
}
