package vswitch

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// picks is a Selector that says what a test wants.
type picks struct {
	verdict frame.Verdict
	to      frame.Selection
	all     bool
	seen    int
}

func (p *picks) Process(*frame.Frame, frame.At) frame.Verdict { p.seen++; return p.verdict }

func (p *picks) Select(*frame.Frame) (frame.Selection, bool) { return p.to, !p.all }

// Frames to groups go to the places of a Selection, as far as split horizon allows.
func TestSelection(t *testing.T) {
	inLab(t, func(l *lab) {
		tun := &stubTunnel{stub: newStub("t")}
		l.v.Attach(tun, 1)
		a, _ := l.port("a", 0)
		b, _ := l.port("b", 0)
		c, _ := l.port("c", 0)
		const peers, pa, pb, pc = 1, 2, 3, 4
		at := func(port, peer uint16) frame.Dest { return frame.NewDest(port, peer) }
		group := frame.MAC{1, 0, 0x5e, 1, 2, 3}
		p := &picks{}
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Multicast: p}}))
		for _, x := range []struct {
			name    string
			dst     frame.MAC
			is      picks
			tunnel  bool // where it comes from
			seen    int
			peers   []uint16 // that get it; 0 = the flood list
			a, b, c int
			drop    frame.Reason
		}{
			{"everywhere", group, picks{all: true}, false, 1, []uint16{0}, 0, 1, 1, 0},
			{"a port", group, picks{to: frame.Selection{Places: [2][]frame.Dest{{at(pb, 0)}}}}, false, 1, nil, 0, 1, 0, 0},
			{"both lists", group, picks{to: frame.Selection{Places: [2][]frame.Dest{{at(pa, 0), at(pb, 0)}, {at(pb, 0), at(pc, 0)}}}}, false, 1, nil, 0, 1, 1, 0},
			{"peers", group, picks{to: frame.Selection{Places: [2][]frame.Dest{{at(peers, 4), at(peers, 7)}, {at(peers, 5)}}}}, false, 1, []uint16{4, 5, 7}, 0, 0, 0, 0},
			{"a flood list and its peer", group, picks{to: frame.Selection{Places: [2][]frame.Dest{{at(peers, 0), at(peers, 7)}}}}, false, 1, []uint16{0}, 0, 0, 0, 0},
			{"tunnels and a port", group, picks{to: frame.Selection{Tunnels: true, Places: [2][]frame.Dest{{at(peers, 7), at(pc, 0)}}}}, false, 1, []uint16{0}, 0, 0, 1, 0},
			{"from a tunnel", group, picks{to: frame.Selection{Tunnels: true, Places: [2][]frame.Dest{{at(peers, 7), at(pc, 0)}}}}, true, 1, nil, 0, 0, 1, 0},
			{"nobody", group, picks{}, false, 1, nil, 0, 0, 0, frame.NoListener},
			{"the sender alone", group, picks{to: frame.Selection{Places: [2][]frame.Dest{{at(pa, 0)}}}}, false, 1, nil, 0, 0, 0, frame.NoListener},
			{"a port that has gone", group, picks{to: frame.Selection{Places: [2][]frame.Dest{{at(9, 0)}}}}, false, 1, nil, 0, 0, 0, frame.NoListener},
			{"taken", group, picks{to: frame.Selection{Taken: true}}, false, 1, nil, 0, 0, 0, 0},
			{"dropped", group, picks{verdict: frame.Drop(frame.BadHeader)}, false, 1, nil, 0, 0, 0, frame.BadHeader},
			{"broadcast", frame.Broadcast, picks{}, false, 0, []uint16{0}, 0, 1, 1, 0},
			{"unicast", mac(99), picks{}, false, 0, []uint16{0}, 0, 1, 1, 0},
		} {
			*p = x.is
			before := *p
			from, frames := a, eth(x.dst, mac(6), 0x800, make([]byte, 46)...)
			number := pa
			if x.tunnel {
				from, frames, number = tun.stub, fromPeer(7, 1, frames), peers
			}
			was := l.drops(number)
			from.send(frames)
			var got []uint16
			for _, o := range tun.sent() {
				got = append(got, o.Peer)
			}
			if na, nb, nc := len(a.sent()), len(b.sent()), len(c.sent()); na != x.a || nb != x.b || nc != x.c || !slices.Equal(got, x.peers) {
				t.Errorf("%s: %d %d %d, peers %v", x.name, na, nb, nc, got)
			}
			now := l.drops(number)
			for r := range now {
				if n := now[r] - was[r]; (n == 1) != (x.drop != 0 && frame.Reason(r) == x.drop) || n > 1 {
					t.Errorf("%s: %d dropped as %v", x.name, n, frame.Reason(r))
				}
			}
			if p.seen-before.seen != x.seen {
				t.Errorf("%s: seen %d times", x.name, p.seen)
			}
			check.OK(t, l.s.FlushPort(a))
		}
		// The peers that a tunnel has for the group are those that it picks, whatever the Selector says of its peers.
		tun.groups.Store(group, true)
		for _, to := range []frame.Selection{{}, {Tunnels: true}, {Places: [2][]frame.Dest{{at(peers, 7), at(pb, 0)}}}} {
			*p = picks{to: to}
			a.send(eth(group, mac(6), 0x800, make([]byte, 46)...))
			out := tun.sent()
			check.Need(t, len(out) == 1 && out[0].Peer == 0, "to %+v: %v", to, out)
			check.Equal(t, "copies to the port", len(b.sent()), len(to.Places[0])/2)
		}
		tun.groups.Clear()
		// An entry for the group takes precedence.
		*p = picks{}
		check.OK(t, l.v.FDB().Set(group, at(pc, 0), fdb.Static))
		a.send(eth(group, mac(6), 0x800, make([]byte, 46)...))
		if len(c.sent()) != 1 || p.seen != 0 {
			t.Errorf("an entry does not take precedence: seen %d", p.seen)
		}
		if err := l.v.Configure(VSIConfig{Slots: Slots{Multicast: say(frame.Continue)}}); err == nil {
			t.Error("a stage that is no Selector is accepted")
		}
	})
}

// What a Selection says does not bring frames of hidden hosts into tunnels, and a hub does not send a frame back to the peer that it
// came from.
func TestSelectionOfHiddenAndHub(t *testing.T) {
	inLab(t, func(l *lab) {
		tun := &stubTunnel{stub: newStub("t")}
		tunnel := check.Must(l.v.Attach(tun, 1))(t)
		a, _ := l.port("a", 0)
		b, at := l.port("b", 0)
		group := eth(frame.MAC{1, 0, 0x5e, 1, 2, 3}, mac(6), 0x800, make([]byte, 46)...)
		p := &picks{to: frame.Selection{Tunnels: true, Places: [2][]frame.Dest{{tunnel.Dest(7)}, {at.Dest(0)}}}}
		slots := Slots{Multicast: p, Neighbour: hider{say(frame.Continue)}}
		check.OK(t, l.v.Configure(VSIConfig{Slots: slots}))
		for _, tunnels := range []bool{true, false} {
			p.to.Tunnels = tunnels
			a.send(group)
			check.Equal(t, "copies into the tunnel", len(tun.sent()), 0)
			check.Equal(t, "copies to the port", len(b.sent()), 1)
		}

		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Multicast: p}}))
		check.OK(t, tunnel.Configure(AttachConfig{Hub: true}))
		p.to = frame.Selection{Places: [2][]frame.Dest{{tunnel.Dest(7), tunnel.Dest(8)}}}
		tun.send(fromPeer(7, 1, group))
		out := tun.sent()
		check.Need(t, len(out) == 1, "%d copies through the hub", len(out))
		check.Equal(t, "the peer that gets it", out[0].Peer, 8)
	})
}

// leftPicks counts what it is to forget.
type leftPicks struct {
	picks
	left []frame.Dest
}

func (p *leftPicks) Left(d frame.Dest) { p.left = append(p.left, d) }

// A Selector forgets listeners that have gone, and none whose MACs are flushed: they still listen, and would be lost until they are
// asked again.
func TestSelectorLeft(t *testing.T) {
	inLab(t, func(l *lab) {
		a, at := l.port("a", 0)
		p := &leftPicks{}
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Multicast: p}}))
		check.OK(t, l.s.FlushPort(a))
		check.OK(t, l.s.FlushPeer(at.Dest(0)))
		check.Equal(t, "places forgotten for flushed MACs", len(p.left), 0)
		check.OK(t, at.Detach())
		check.True(t, slices.Equal(p.left, []frame.Dest{at.Dest(0)}), "%v", p.left)
	})
}
