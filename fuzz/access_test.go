package fuzz

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/framing"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A sink is a gateway that takes what it is shown.
type sink struct{ frames int }

func (s *sink) Process(*frame.Frame, frame.At) frame.Verdict {
	s.frames++
	return frame.Consume
}

// FuzzAccess: whatever a member in mode Access sends, in whatever framing, no other member
// gets it, nor anybody behind the tunnel. Bits 0 and 1 choose the mode of inner VLANs, 2 and 3
// the stages of the slot Ingress, the others heads of the framing.
func FuzzAccess(f *testing.F) {
	gate := arp.DefaultAccessMAC
	f.Add(uint32(0), mem.Ethernet(frame.Broadcast, gate, 0x806, []byte{0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 169, 254, 1, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2}))
	for i := range uint32(16) {
		f.Add(i|i<<4, mem.Ethernet(frame.MAC{0x33, 0x33, 0, 0, 0, 1}, frame.MAC{2, 0, 0, 0, 0, 1}, 0x86dd,
			append(append([]byte{0x60, 0, 0, 0, 0, 16, 58, 255, 0xfe, 0x80, 14: 0, 23: 1, 24: 0xff, 2, 39: 1}, 134, 0), make([]byte, 14)...)))
		f.Add(i|i<<8, mem.Ethernet(gate, frame.MAC{2, 0, 0, 0, 0, 1}, 0x800, []byte{0x45, 0, 0, 28, 8: 64, 17, 12: 10, 0, 0, 1, 10, 0, 0, 2, 0, 68, 0, 67, 0, 8, 27: 0}))
	}
	f.Fuzz(func(t *testing.T, bits uint32, b []byte) {
		if len(b) < 14 || len(b) > 1000 {
			return
		}
		b = bytes.Clone(b)
		heads := append(framing.Plain[:len(framing.Plain):len(framing.Plain)], framing.Odd...)
		for n := bits >> 4; n != 0; n >>= 4 {
			if i := int(n & 15); i < len(heads) && len(b) < 1400 {
				b = framing.Put(b, heads[i])
			}
		}
		var in vswitch.Stage
		switch bits >> 2 & 3 {
		case 1:
			in = arp.OnlyIP{}
		case 2:
			g := check.Must(policy.NewGuard(nil))(t)
			in = g
		}
		mem.Run(t, nil, func(f *mem.Fabric) {
			near, far := f.Node("192.0.2.1"), f.Node("192.0.2.2")
			f.Mesh(100, near, far)
			vsi := near.Segment(100)
			table := check.Must(arp.NewTable(nil))(t)
			r, err := arp.NewResponder(&arp.Config{Table: table, Mode: arp.Access, Locate: vsi.FDB().Lookup})
			check.OK(t, err)
			g := new(sink)
			err = vsi.Configure(vswitch.VSIConfig{InnerVLAN: vswitch.VLANMode(bits & 3 % 3), Slots: vswitch.Slots{Ingress: in, Neighbour: r, Gateway: g}})
			check.OK(t, err)
			check.OK(t, vsi.FDB().Set(gate, 0, 0))
			a, others := near.Host(100), []*mem.Host{near.Host(100), near.Host(100), far.Host(100)}
			to := frame.MAC(b)
			for _, x := range append(others, nil) {
				if x != nil { // where it is is known
					x.Send(mem.Ethernet(gate, x.MAC, 0x0800, []byte{0x45}))
					copy(b, x.MAC[:])
				} else {
					copy(b, to[:])
				}
				check.OK(t, a.Pipe.Send(b))
			}
			f.Settle()
			if _, guarded := in.(*policy.Guard); !guarded && g.frames < len(others) { // a guard refuses half a packet
				t.Fatalf("%d frames at the gateway, %d were sent to it by others", g.frames, len(others))
			}
			for _, x := range others {
				if got := x.Got(); len(got) != 0 {
					t.Errorf("% x at %s", got[0], x.Name())
				}
			}
			a.Got()
		})
	})
}
