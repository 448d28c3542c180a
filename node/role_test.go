package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A shared Ethernet segment: a host with links to nodes a and b. Others are alone, one at each node.
//
//	host --pa-- a --la-- other
//	  |         |
//	  |       tunnels ------ c --lc-- other
//	  |         |
//	  +--pb-- b --lb-- other
type sharedLab struct {
	t     *testing.T
	nodes map[string]*Node
	ports map[string]*port.Pipe

	mu   sync.Mutex
	got  map[string]map[uint32]int // copies by port and number
	sent uint32
}

const sharedVNI = 100

var nodeAt = map[string]netip.Addr{"a": netip.MustParseAddr("10.0.0.1"), "b": netip.MustParseAddr("10.0.0.2"), "c": netip.MustParseAddr("10.0.0.3")}

// at tells which node has a port.
var portAt = map[string]string{"pa": "a", "la": "a", "pb": "b", "lb": "b", "lc": "c"}

// macAt is the MAC of the host, which has two ports, and those of the others.
var macAt = map[string]frame.MAC{"pa": host(1), "pb": host(1), "la": host(2), "lb": host(3), "lc": host(4)}

func newSharedLab(t *testing.T) *sharedLab {
	l := &sharedLab{t: t, nodes: map[string]*Node{}, ports: map[string]*port.Pipe{}, got: map[string]map[uint32]int{}}
	network := memory.NewNetwork(nil)
	t.Cleanup(func() { network.Close() })
	for name, addr := range nodeAt {
		n := running(t, &Options{Owners: []string{"evpn"}, Listen: func(c *Tunnel) (vtep.Underlay, error) {
			return network.Listen(netip.AddrPortFrom(c.Local, 4789), nil)
		}})
		l.nodes[name] = n
		addTunnel(t, n, "vx", Tunnel{Local: addr})
		in := SegmentTunnel{Tunnel: "vx"}
		in.NoLearn = true
		addSegment(t, n, sharedVNI, &Segment{Tunnels: []SegmentTunnel{in}})
	}
	for name, at := range portAt {
		p := port.NewPipe(&port.PipeConfig{Name: name, Queue: 4096})
		l.ports[name] = p
		must(t, check.Must(l.nodes[at].Segment(sharedVNI, nil))(t).Add(p, nil))
		l.got[name] = map[uint32]int{}
		go func() {
			for {
				f, err := p.Recv(t.Context())
				if err != nil {
					return
				}
				if len(f) >= 46 {
					l.mu.Lock()
					l.got[name][binary.BigEndian.Uint32(f[42:])]++
					l.mu.Unlock()
				}
			}
		}()
	}
	for name := range nodeAt {
		var rows []control.Row
		for other, addr := range nodeAt {
			if other != name {
				rows = append(rows, control.Flood{VNI: sharedVNI, VTEP: netip.AddrPortFrom(addr, 0)})
			}
		}
		for p, at := range portAt {
			switch mac := macAt[p]; {
			case p == "pa" || p == "pb":
				if at == name {
					rows = append(rows, control.MAC{VNI: sharedVNI, MAC: mac, Port: p})
				}
			case at != name:
				rows = append(rows, control.MAC{VNI: sharedVNI, MAC: mac, VTEP: netip.AddrPortFrom(nodeAt[at], 0)})
			}
		}
		l.program(name, control.Update{Add: rows})
	}
	l.program("c", control.Update{Add: []control.Row{l.link("a"), l.link("b"), control.MAC{VNI: sharedVNI, MAC: host(1), Group: "es"}}})
	return l
}

func (l *sharedLab) program(node string, u control.Update) {
	l.t.Helper()
	must(l.t, l.nodes[node].Program("evpn", u))
}

// link is the row of a node that leads to the host.
func (l *sharedLab) link(node string) control.Row {
	return control.Group{VNI: sharedVNI, Name: "es", VTEP: netip.AddrPortFrom(nodeAt[node], 0)}
}

func (l *sharedLab) role(node string, r vswitch.Role) {
	l.t.Helper()
	must(l.t, l.nodes[node].SetRole("p"+node, sharedVNI, r))
}

// send sends a numbered UDP packet of a flow.
func (l *sharedLab) send(from string, dst frame.MAC, flow uint16) uint32 {
	l.t.Helper()
	l.sent++
	src := macAt[from]
	b := append(append(append(make([]byte, 0, 64), dst[:]...), src[:]...), 8, 0)
	b = append(b, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, src[5], 192, 0, 2, dst[5])
	b = binary.BigEndian.AppendUint16(b, 1024+flow)
	b = append(b, 0x12, 0xb7, 0, 26, 0, 0)
	b = binary.BigEndian.AppendUint32(b, l.sent)
	must(l.t, l.ports[from].Send(append(b, make([]byte, 14)...)))
	return l.sent
}

// copies returns how many the host got of a frame, and each other.
func (l *sharedLab) copies(n uint32) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := map[string]int{"host": l.got["pa"][n] + l.got["pb"][n]}
	for _, p := range []string{"la", "lb", "lc"} {
		m[p] = l.got[p][n]
	}
	return m
}

// want waits for the copies of frames, and a little longer for more of them.
func (l *sharedLab) want(what string, frames []uint32, want map[string]int) {
	l.t.Helper()
	wrong := func() string {
		for _, n := range frames {
			if got := l.copies(n); fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Sprintf("%v of frame %d", got, n)
			}
		}
		return ""
	}
	for end := time.Now().Add(10 * time.Second); wrong() != "" && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if got := wrong(); got != "" {
		l.t.Errorf("%s: copies %s, want %v", what, got, want)
	}
}

// broadcasts has everybody send some, the host by the links that it uses.
func (l *sharedLab) broadcasts(what string, links ...string) {
	l.t.Helper()
	for _, from := range append([]string{"la", "lb", "lc"}, links...) {
		want := map[string]int{"host": 1, "la": 1, "lb": 1, "lc": 1}
		if want[from] = 0; from == "pa" || from == "pb" {
			delete(want, from)
			want["host"] = 0
		}
		for class, dst := range map[string]frame.MAC{"broadcast": frame.Broadcast, "multicast": {1, 0, 0x5e, 1, 2, 3}, "unknown unicast": host(99)} {
			var frames []uint32
			for flow := range uint16(20) {
				frames = append(frames, l.send(from, dst, flow))
			}
			l.want(fmt.Sprint(what, ": ", class, " from ", from), frames, want)
		}
	}
}

// unicasts has everybody send flows to the host, and the host to everybody.
func (l *sharedLab) unicasts(what string, flows int, links ...string) {
	l.t.Helper()
	for _, other := range []string{"la", "lb", "lc"} {
		var to, from []uint32
		for flow := range flows {
			to = append(to, l.send(other, host(1), uint16(flow)))
			from = append(from, l.send(links[flow%len(links)], macAt[other], uint16(flow)))
			if flow%200 == 199 {
				time.Sleep(5 * time.Millisecond) // queues are short
			}
		}
		l.want(fmt.Sprint(what, ": to the host from ", other), to, map[string]int{"host": 1, "la": 0, "lb": 0, "lc": 0})
		want := map[string]int{"host": 0, "la": 0, "lb": 0, "lc": 0}
		want[other] = 1
		l.want(fmt.Sprint(what, ": from the host to ", other), from, want)
	}
}

// arrived returns how many frames came by each link.
func (l *sharedLab) arrived() (a, b int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.got["pa"]), len(l.got["pb"])
}

// All-active: the host gets each flooded frame once and none of its own, and known unicast by both links (RFC 8365, section 8.3.1).
func TestSharedAllActive(t *testing.T) {
	l := newSharedLab(t)
	for _, df := range []string{"a", "b", "a"} {
		other := map[string]string{"a": "b", "b": "a"}[df]
		l.role(df, vswitch.Role{NoFlood: true, Shared: []netip.Addr{nodeAt[other]}})
		l.role(other, vswitch.Role{NoFlood: true, Shared: []netip.Addr{nodeAt[df]}})
		l.role(df, vswitch.Role{Shared: []netip.Addr{nodeAt[other]}})
		l.broadcasts(df+" forwards", "pa", "pb")
		a, b := l.arrived()
		l.unicasts(df+" forwards", 1000, "pa", "pb")
		if x, y := l.arrived(); x-a < 1000+300 || y-b < 1000+300 { // of its own 1000, and a part of what c sends
			t.Errorf("by the links came %d and %d frames", x-a, y-b)
		}
	}
	// A link is lost: one write, and all goes by the other.
	l.role("b", vswitch.Role{})
	l.program("a", control.Update{Del: []control.Row{control.MAC{VNI: sharedVNI, MAC: host(1)}},
		Add: []control.Row{l.link("b"), control.MAC{VNI: sharedVNI, MAC: host(1), Group: "es"}}})
	l.role("a", vswitch.Role{Blocked: true})
	l.program("c", control.Update{Del: []control.Row{l.link("a")}})
	a, _ := l.arrived()
	l.broadcasts("without a", "pb")
	l.unicasts("without a", 200, "pb")
	if x, _ := l.arrived(); x != a {
		t.Errorf("%d frames came by the link that is lost", x-a)
	}
}

// Single-active: all goes by the link that is not blocked, and nothing by the other.
func TestSharedSingleActive(t *testing.T) {
	l := newSharedLab(t)
	for _, df := range []string{"a", "b"} {
		other := map[string]string{"a": "b", "b": "a"}[df]
		l.role(other, vswitch.Role{Blocked: true})
		l.role(df, vswitch.Role{})
		for _, n := range []string{other, "c"} {
			l.program(n, control.Update{Add: []control.Row{l.link(df), control.MAC{VNI: sharedVNI, MAC: host(1), Group: "es"}}, Del: []control.Row{l.link(other)}})
		}
		l.program(df, control.Update{Add: []control.Row{control.MAC{VNI: sharedVNI, MAC: host(1), Port: "p" + df}}, Del: []control.Row{l.link(df), l.link(other)}})
		was := map[string]int{}
		was["a"], was["b"] = l.arrived()
		l.broadcasts(df+" forwards", "p"+df)
		l.unicasts(df+" forwards", 200, "p"+df)
		l.want("by the blocked link", []uint32{l.send("p"+other, frame.Broadcast, 1)}, map[string]int{"host": 0, "la": 0, "lb": 0, "lc": 0})
		now := map[string]int{}
		now["a"], now["b"] = l.arrived()
		if now[other] != was[other] {
			t.Errorf("%d frames came by the blocked link", now[other]-was[other])
		}
	}
}

// A role is there before its member, and stays over changes of the configuration and of the port.
func TestRoleStays(t *testing.T) {
	n := running(t)
	blocked := vswitch.Role{Blocked: true}
	must(t, n.SetRole("x", 1, blocked))
	must(t, n.SetRole("y", 1, vswitch.Role{NoFlood: true, Shared: []netip.Addr{nodeAt["a"]}}))
	must(t, n.SetRole("y", 1, vswitch.Role{})) // none
	x, y := port.NewPipe(&port.PipeConfig{Name: "x"}), port.NewPipe(&port.PipeConfig{Name: "y"})
	seg := addSegment(t, n, 1, nil)
	must(t, seg.Add(x, nil))
	must(t, seg.Add(x, &Member{VLAN: 7}))
	must(t, seg.Add(y, nil))
	roles := func(what string, want int) {
		t.Helper()
		is := 0
		for _, a := range check.Must(seg.Switch())(t).Attachments() {
			if r := a.Config().Role; r != nil && r.Blocked {
				is++
			}
			if a.PortName() == "y" && a.Config().Role != nil {
				t.Errorf("%s: y has a role", what)
			}
		}
		check.Equal(t, what+": blocked", is, want)
	}
	roles("at the start", 2)
	must(t, seg.Update(func(s *Segment) error { s.MaxMACs, s.Members[0].MaxMACs = 7, 3; return nil }))
	roles("after a change", 2)
	must(t, seg.Update(func(s *Segment) error { s.Members[0].Guard = nil; s.Refuse = true; return nil })) // another VSI
	roles("in a new segment", 2)
	must(t, x.Close())
	again := port.NewPipe(&port.PipeConfig{Name: "x"})
	for end := time.Now().Add(5 * time.Second); len(n.Down()) == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	must(t, n.SetRole("x", 1, vswitch.Role{Blocked: true, NoFlood: true})) // while it is down
	must(t, seg.Add(again, nil))
	roles("after a failure", 2)
	must(t, again.Send(greeting(1, 0)))
	drops := func() (n uint64) { return check.Must(seg.Switch())(t).Stats().Drops[frame.Blocked] }
	for end := time.Now().Add(5 * time.Second); drops() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	check.Equal(t, "dropped", drops(), 1)
	must(t, n.SetRole("x", 1, vswitch.Role{}))
	roles("without roles", 0)

	r := vswitch.Role{Shared: []netip.Addr{nodeAt["a"]}}
	must(t, n.SetRole("x", 2, r))
	r.Shared[0] = nodeAt["b"]
	if got := n.Role("x", 2); len(got.Shared) != 1 || got.Shared[0] != nodeAt["a"] {
		t.Errorf("role %+v", got)
	}
	check.ErrorHas(t, n.SetRole("x", 1, vswitch.Role{Shared: []netip.Addr{{}}}), `node: segment 1: member "x": Role.Shared[0]`)
	n.Close()
	if err := n.SetRole("x", 1, blocked); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
