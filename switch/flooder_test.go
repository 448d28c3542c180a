package vswitch

import (
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// stubFlooder is a tunnel on whose flood list nobody takes more than 1200 bytes, though its
// underlay does.
type stubFlooder struct{ *stubTunnel }

func (stubFlooder) MTU(uint16) int                  { return 1464 }
func (stubFlooder) FloodMTU(uint32) (some, all int) { return 1200, 1200 }

// A frame that an entry, or a stage, sends to a flood list where nobody takes it does not vanish
// in the tunnel: its sender is told.
func TestTooBigForFloodList(t *testing.T) {
	inLab(t, func(l *lab) {
		tun := stubFlooder{&stubTunnel{stub: newStub("t")}}
		at := check.Must(l.v.AttachWith(tun, 1, &AttachConfig{Hub: true}))(t)
		a, _ := l.port("a", 0)
		var told frame.At
		for _, gateway := range []bool{false, true} {
			slots := Slots{TooBig: hears(func(at frame.At) { told = at })}
			if to := frame.Dest(0); gateway {
				slots.Gateway = say(frame.Forward(at.Dest(0)))
				check.OK(t, l.v.FDB().Set(mac(9), to, fdb.Static))
			} else {
				check.OK(t, l.v.FDB().Set(mac(9), at.Dest(0), fdb.Static))
			}
			check.OK(t, l.v.Configure(VSIConfig{Slots: slots}))
			for _, n := range []int{1200, 1201, 1464} {
				told = frame.At{}
				a.send(eth(mac(9), mac(6), 0x800, make([]byte, n-14)...))
				fits := n <= 1200
				if got := len(tun.sent()) == 1; got != fits || told.MTU == 1200 == fits {
					t.Errorf("gateway %v, %d bytes: sent %v, told %+v", gateway, n, got, told)
				}
			}
		}
	})
}
