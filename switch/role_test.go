package vswitch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// addressed is a stubTunnel whose peers, below 100, have addresses.
type addressed struct{ *stubTunnel }

func (addressed) Sender(peer uint16) frame.Endpoint {
	if peer == 0 || peer >= 100 {
		return frame.Endpoint{}
	}
	e, _ := frame.EndpointFrom(netip.AddrPortFrom(vtepAt(peer), 0))
	return e
}

func vtepAt(peer uint16) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(peer >> 8), byte(peer)})
}

func newAddressed(name string) addressed { return addressed{&stubTunnel{stub: newStub(name)}} }

// withRole sets the role of an attachment.
func withRole(t *testing.T, a *Attachment, r *Role) {
	t.Helper()
	c := a.Config()
	c.Role = r
	check.OK(t, a.Configure(c))
}

// Nothing enters or leaves where the role is Blocked, and all of it is counted. What was learned there is gone, with an event; what a
// control plane has said stays.
func TestBlocked(t *testing.T) {
	inLab(t, func(l *lab) {
		tun := newAddressed("t")
		check.Must(l.v.Attach(tun, 1))(t)
		a, at := l.port("a", 0)
		b, _ := l.port("b", 0)
		far, near, said := mac(1), mac(2), mac(3)
		tun.send(fromPeer(7, 1, eth(frame.Broadcast, far, 0x800)))
		a.send(eth(far, near, 0x800))
		check.OK(t, l.v.FDB().Set(said, at.Dest(0), fdb.Control))
		for _, s := range []*stub{tun.stub, a, b} {
			s.sent()
		}
		events := l.s.Events(frame.EventFlushed, frame.EventMACLearned)
		defer events.Close()

		withRole(t, at, &Role{Blocked: true})
		e := check.Must(events.Next(context.Background()))(t)
		check.True(t, e.Kind == frame.EventFlushed && e.VNI == 1 && e.Dest == at.Dest(0), "event %+v", e)
		if _, known := l.v.FDB().Get(near); known {
			t.Error("what was learned is still there")
		}
		if _, known := l.v.FDB().Get(said); !known {
			t.Error("what a control plane has said is gone")
		}
		in, out := l.drops(2)[frame.Blocked], l.s.Stats().Ports[2].TxDrops[frame.Blocked]
		a.send(eth(far, near, 0x800), eth(frame.Broadcast, near, 0x806), eth(said, near, 0x800))
		tun.send(fromPeer(7, 1, eth(said, far, 0x800)), fromPeer(7, 1, eth(frame.Broadcast, far, 0x800)))
		b.send(eth(said, mac(9), 0x800))
		check.Equal(t, "dropped as they came", l.drops(2)[frame.Blocked]-in, 3)
		check.Equal(t, "and before they left", l.s.Stats().Ports[2].TxDrops[frame.Blocked]-out, 3)
		check.True(t, len(a.sent()) == 0 && len(tun.sent()) == 0 && len(b.sent()) == 1, "something went through")
		if _, known := l.v.FDB().Get(near); known {
			t.Error("it has learned")
		}

		withRole(t, at, &Role{Blocked: true, NoFlood: true}) // was blocked before
		withRole(t, at, nil)
		a.send(eth(far, near, 0x800))
		if got := tun.sent(); len(got) != 1 || got[0].Peer != 7 {
			t.Errorf("open again: %v", got)
		}
		if e = check.Must(events.Next(context.Background()))(t); e.Kind != frame.EventMACLearned { // mac(9)
			t.Errorf("event %+v", e)
		}
		if e = check.Must(events.Next(context.Background()))(t); e.Kind != frame.EventMACLearned || e.MAC != near {
			t.Errorf("event %+v, want that %v is learned", e, near)
		}
	})
}

// An attachment may begin with a role, and Shut goes before Blocked.
func TestRoleFromTheStart(t *testing.T) {
	inLab(t, func(l *lab) {
		a, b := newStub("a"), newStub("b")
		at := check.Must(l.v.AttachWith(a, 0, &AttachConfig{Role: &Role{Blocked: true}, Shut: true}))(t)
		check.Must(l.v.Attach(b, 0))(t)
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		check.Equal(t, "shut", l.drops(1)[frame.PortDown], 1)
		check.OK(t, at.Configure(AttachConfig{Role: at.Config().Role}))
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		check.Equal(t, "blocked", l.drops(1)[frame.Blocked], 1)
		check.Equal(t, "copies", len(b.sent()), 0)
	})
}

// A flow that an Offload may carry is none while one of its ends is blocked; roles for floods leave it alone.
func TestBlockedVoidsFlows(t *testing.T) {
	inLab(t, func(l *lab) {
		tun := newAddressed("t")
		check.Must(l.v.Attach(tun, 1))(t)
		a, at := l.port("a", 0)
		o := &told{macs: map[frame.MAC]int{}}
		check.OK(t, l.s.SetOffload(o))
		far, near := mac(1), mac(2)
		learn := func() {
			tun.send(fromPeer(7, 1, eth(frame.Broadcast, far, 0x800)))
			a.send(eth(far, near, 0x800))
		}
		learn()
		pairs := []Pair{{From: frame.NewDest(1, 7), Tag: 1, Src: far, Dst: near}, {From: at.Dest(0), Src: near, Dst: far}}
		ask := func(what string, want bool) {
			t.Helper()
			for _, p := range pairs {
				if _, err := l.s.Flow(p); (err == nil) != want {
					t.Errorf("%s: %+v: %v", what, p, err)
				}
			}
		}
		ask("without a role", true)
		withRole(t, at, &Role{NoFlood: true, Shared: []netip.Addr{vtepAt(7)}})
		ask("no floods", true)
		was := o.all
		withRole(t, at, &Role{Blocked: true})
		check.True(t, o.all > was, "nobody was told")
		ask("blocked", false)
		check.OK(t, l.v.FDB().Set(near, at.Dest(0), fdb.Control))
		ask("blocked, with an entry", false)
		withRole(t, at, nil)
		learn()
		ask("open again", true)
	})
}

func TestRoleErrors(t *testing.T) {
	inLab(t, func(l *lab) {
		_, at := l.port("a", 0)
		tun := check.Must(l.v.Attach(newAddressed("t"), 1))(t)
		for _, c := range []struct {
			a    *Attachment
			r    Role
			want string
		}{
			{tun, Role{NoFlood: true}, "Role: not for tunnels"},
			{at, Role{Shared: []netip.Addr{vtepAt(1), {}}}, "Role.Shared[1]"},
			{at, Role{Shared: []netip.Addr{netip.MustParseAddr("239.0.0.1")}}, "Role.Shared[0]: 239.0.0.1"},
			{at, Role{Shared: []netip.Addr{netip.MustParseAddr("fe80::1%nosuch")}}, "Role.Shared[0]"},
			{at, Role{Shared: slices.Repeat([]netip.Addr{vtepAt(1)}, 65)}, "Role.Shared: 65: must be at most 64 addresses"},
		} {
			check.ErrorHas(t, c.a.Configure(AttachConfig{Role: &c.r}), "vswitch: AttachConfig."+c.want)
		}
		check.OK(t, at.Configure(AttachConfig{Role: &Role{Shared: []netip.Addr{vtepAt(1), netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("2001:db8::1")}}}))
	})
}

// A roleModel says who gets a flooded frame.
type roleModel struct {
	roles map[string]*Role // of ports
}

func (m *roleModel) gets(port, from string, tunnel bool, peer uint16) bool {
	r := m.roles[port]
	switch {
	case port == from:
		return false
	case r == nil:
		return true
	case r.Blocked:
		return false
	case !tunnel:
		return true
	case r.NoFlood:
		return false
	case len(r.Shared) == 0 || from == "plain": // a tunnel without addresses
		return true
	}
	return peer != 0 && (peer >= 100 || !slices.Contains(r.Shared, vtepAt(peer)))
}

// Random roles, senders and floods, also of what a Selector has chosen, against a model.
func TestRolesModel(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inLab(t, func(l *lab) { playRoles(l, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func playRoles(l *lab, r *rand.Rand) {
	t := l.t
	tun, plain := newAddressed("t"), &stubTunnel{stub: newStub("plain")}
	check.Must(l.v.Attach(tun, 1))(t)
	check.Must(l.v.Attach(plain, 1))(t)
	stubs, at, dests := map[string]*stub{}, map[string]*Attachment{}, []frame.Dest{}
	names := []string{"a", "b", "c", "d"}
	for _, n := range names {
		stubs[n], at[n] = l.port(n, 0)
		dests = append(dests, at[n].Dest(0))
	}
	m := &roleModel{roles: map[string]*Role{}}
	p := &picks{}
	check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Multicast: p}}))
	for i := range 200 {
		for n := r.IntN(3); n > 0; n-- {
			port := names[r.IntN(4)]
			if m.roles[port] = drawRole(r); r.IntN(8) == 0 { // attached again, with the role from the start
				check.OK(t, at[port].Detach())
				stubs[port] = newStub(port)
				at[port] = check.Must(l.v.AttachWith(stubs[port], 0, &AttachConfig{Role: m.roles[port]}))(t)
				dests[slices.Index(names, port)] = at[port].Dest(0)
				continue
			}
			withRole(t, at[port], m.roles[port])
		}
		dst := []frame.MAC{frame.Broadcast, {1, 0, 0x5e, 0, 0, 1}, mac(99)}[r.IntN(3)]
		var chosen []frame.Dest // nil: all
		if p.all = true; r.IntN(2) == 0 && dst != frame.Broadcast && dst.IsGroup() {
			for _, d := range dests {
				if r.IntN(2) == 0 {
					chosen = append(chosen, d)
				}
			}
			slices.Sort(chosen)
			p.all, p.to = false, frame.Selection{Places: [2][]frame.Dest{chosen}}
		}
		from, peer := append(names, "t", "plain")[r.IntN(6)], uint16([]int{0, 1, 2, 3, 200}[r.IntN(5)])
		tunnel, b, in := false, eth(dst, mac(byte(1+r.IntN(3))), 0x800), stubs[from]
		var number uint16 // of the port
		switch from {
		case "t":
			tunnel, b, in, number = true, fromPeer(peer, 1, b), tun.stub, 1
		case "plain":
			tunnel, b, in, number = true, fromPeer(peer, 1, b), plain.stub, 2
		default:
			number = at[from].Dest(0).Port()
		}
		before := l.rxDrops(number)
		in.send(b)
		enters := tunnel || m.roles[from] == nil || !m.roles[from].Blocked
		copies, withheld := 0, false
		for k, n := range names {
			here := enters && n != from && (p.all || slices.Contains(chosen, dests[k]))
			want := here && m.gets(n, from, tunnel, peer)
			if got := len(stubs[n].sent()); got > 1 || (got == 1) != want {
				t.Fatalf("%d: to %v from %s, peer %d, roles %+v: %d copies to %s, want it %v", i, dst, from, peer, m.roles, got, n, want)
			}
			blocked := m.roles[n] != nil && m.roles[n].Blocked
			if here && (want || blocked && goes(m.roles[n], m, n, from, tunnel, peer)) {
				copies++
			}
			withheld = withheld || here && !goes(m.roles[n], m, n, from, tunnel, peer)
		}
		for _, s := range []*stub{tun.stub, plain.stub} {
			if n := len(s.sent()); !tunnel && enters && p.all != (n == 1) || (tunnel || !enters) && n != 0 {
				t.Fatalf("%d: from %s: %d copies to a tunnel", i, from, n)
			}
		}
		after := l.rxDrops(number)
		reason := frame.NotDropped
		switch {
		case !enters:
			reason = frame.Blocked
		case copies > 0 || !tunnel && p.all:
		case withheld:
			reason = frame.NotForwarder
		case p.all:
			reason = frame.NoEgress
		default:
			reason = frame.NoListener
		}
		for x := range after {
			if n := after[x] - before[x]; n > 1 || (n == 1) != (reason != 0 && frame.Reason(x) == reason) {
				t.Fatalf("%d: from %s, peer %d, roles %+v: %d dropped as %v, want %v", i, from, peer, m.roles, n, frame.Reason(x), reason)
			}
		}
		l.v.Flush()
	}
}

// goes is gets but for Blocked, which drops a copy that was made.
func goes(r *Role, m *roleModel, port, from string, tunnel bool, peer uint16) bool {
	if r == nil || !r.Blocked {
		return m.gets(port, from, tunnel, peer)
	}
	open := *r
	open.Blocked = false
	return (&roleModel{map[string]*Role{port: &open}}).gets(port, from, tunnel, peer)
}

func drawRole(r *rand.Rand) *Role {
	if r.IntN(4) == 0 {
		return nil
	}
	x := &Role{Blocked: r.IntN(5) == 0, NoFlood: r.IntN(3) == 0}
	for peer := range uint16(4) {
		if r.IntN(3) == 0 {
			x.Shared = append(x.Shared, vtepAt(peer+1))
		}
	}
	return x
}

func (l *lab) rxDrops(port uint16) frame.Drops {
	for _, p := range l.s.Stats().Ports {
		if p.Port == port {
			return p.RxDrops
		}
	}
	return frame.Drops{}
}

// Known unicast takes a link whatever floods do, and what comes from it is flooded to the others of the node.
func TestRoleKnownUnicast(t *testing.T) {
	inLab(t, func(l *lab) {
		tun := newAddressed("t")
		check.Must(l.v.Attach(tun, 1))(t)
		a, at := l.port("a", 0)
		withRole(t, at, &Role{NoFlood: true, Shared: []netip.Addr{vtepAt(7)}})
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		check.Equal(t, "local floods", len(tun.sent()), 1)
		for _, peer := range []uint16{7, 8, 0} {
			tun.send(fromPeer(peer, 1, eth(mac(1), mac(5), 0x800)))
			check.Equal(t, "known unicast", len(a.sent()), 1)
		}
	})
}
