package vswitch

import (
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// gpeStub is a tunnel all of whose frames are copies that head-end replication has made.
type gpeStub struct{ *stubTunnel }

func (s gpeStub) Readers() []frame.Reader { return []frame.Reader{s} }
func (s gpeStub) Read(b *frame.Batch) error {
	err := s.stubTunnel.Read(b)
	for i := range b.Frames {
		b.Frames[i].Replicated = true
	}
	return err
}

func newGPEStub(name string) gpeStub { return gpeStub{&stubTunnel{stub: newStub(name)}} }

// A copy goes to local ports, and not into the tunnel it came from, be it a hub's: who made it
// has made those for its other peers too. A tunnel out of its group is another fabric.
func TestReplicatedIsNotFloodedToItsTunnel(t *testing.T) {
	for _, hub := range []bool{false, true} {
		inLab(t, func(l *lab) {
			in := newGPEStub("in")
			check.Must(l.v.AttachWith(in, 1, &AttachConfig{Hub: hub}))(t)
			out, same := &stubTunnel{stub: newStub("out")}, &stubTunnel{stub: newStub("same")}
			check.Must(l.v.AttachWith(out, 1, &AttachConfig{Hub: true}))(t) // outside of the full mesh
			if !hub {
				check.Must(l.v.Attach(same, 1))(t)
			}
			a, _ := l.port("a", 0)
			b, _ := l.port("b", 0)

			for _, dst := range []frame.MAC{frame.Broadcast, {1, 0, 0x5e, 0, 0, 1}, mac(99)} {
				in.send(fromPeer(3, 1, eth(dst, mac(5), 0x800)))
				if i, s, o := in.sent(), same.sent(), out.sent(); len(i) != 0 || len(s) != 0 || len(o) != 1 {
					t.Errorf("hub %v, to %v: back to %v, to another tunnel of the group %v, of none %v", hub, dst, i, s, o)
				}
				if len(a.sent()) != 1 || len(b.sent()) != 1 {
					t.Errorf("hub %v, to %v: a local port has no copy", hub, dst)
				}
			}
			// It is learned from as any other, and known unicast goes on through a tunnel.
			out.send(fromPeer(9, 1, eth(frame.Broadcast, mac(6), 0x800)))
			in.sent()
			out.sent()
			same.sent()
			a.sent()
			in.send(fromPeer(3, 1, eth(mac(6), mac(5), 0x800)))
			if got := out.sent(); len(got) != 1 || got[0].Peer != 9 {
				t.Errorf("hub %v, known unicast: %v", hub, got)
			}
			a.send(eth(mac(5), mac(1), 0x800))
			if got := in.sent(); len(got) != 1 || got[0].Peer != 3 {
				t.Errorf("hub %v, to whom it was learned from: %v", hub, got)
			}
			// Of a local port's broadcasts both tunnels have a copy.
			a.send(eth(frame.Broadcast, mac(1), 0x800))
			check.True(t, len(in.sent()) == 1 && len(out.sent()) == 1, "hub %v: a local broadcast", hub)
			l.wantAccounts()
		})
	}
}

// With nobody but tunnels there it has nowhere to go, and is counted so.
func TestReplicatedWithoutEgress(t *testing.T) {
	inLab(t, func(l *lab) {
		in := newGPEStub("in")
		check.Must(l.v.AttachWith(in, 1, &AttachConfig{Hub: true}))(t)
		in.send(fromPeer(3, 1, eth(frame.Broadcast, mac(5), 0x800)))
		if d := l.drops(1); d[frame.NoEgress] != 1 || len(in.sent()) != 0 {
			t.Errorf("%v", d)
		}
	})
}

// routerStub routes every packet into another segment, to a MAC.
type routerStub struct {
	vni frame.VNI
	to  frame.MAC
}

func (r routerStub) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	copy(f.Bytes(), r.to[:])
	f.VNI = r.vni
	return frame.Reenter
}

// What the gateway has routed is its own: that the packet came in a copy that was flooded
// says nothing of the segment it goes to.
func TestReplicatedEndsWhereItIsRouted(t *testing.T) {
	inLab(t, func(l *lab) {
		in := newGPEStub("in")
		check.Must(l.v.Attach(in, 1))(t)
		v2 := check.Must(l.s.VSI(2, nil))(t)
		check.Must(v2.Attach(in, 2))(t)
		l.v.FDB().Set(mac(7), 0, fdb.Static)
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: routerStub{2, mac(50)}}}))
		in.send(fromPeer(3, 1, eth(mac(7), mac(5), 0x800)))
		if got := in.sent(); len(got) != 1 || got[0].Tag != 2 || got[0].Peer != 0 {
			t.Errorf("to a host that is not known in the other segment: %v", got)
		}
		if d := l.drops(1); d.Total() != 0 {
			t.Errorf("%v", d)
		}
	})
}
