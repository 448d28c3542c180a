package fuzz

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A datagram whose VNI was not understood belongs to no network, to VNI 0 neither.
func TestVNI0(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a := f.Node("10.0.0.1")
		f.Mesh(0, a)
		u := check.Must(f.Net.Listen(netip.MustParseAddrPort("10.0.0.9:4789"), nil))(t)
		sendRaw(t, u, a.Addr, []byte{8, 0, 0})                // short
		sendRaw(t, u, a.Addr, []byte{0, 0, 0, 0, 0, 1, 0, 0}) // no I flag, VNI 256
		f.Settle()
		for _, v := range a.Stats().VSIs {
			for r, n := range v.Drops.All() {
				t.Errorf("VSI %d: %d drops %v", v.VNI, n, r)
			}
		}
	})
}

func sendRaw(t *testing.T, u vtep.Underlay, to netip.AddrPort, b []byte) {
	e := check.Must(frame.EndpointFrom(to))(t)
	check.OK(t, u.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{b}, To: []frame.Endpoint{e}}}))
}

// A port that was kept, and so is paused, goes on when it is attached again, whether
// it is to be kept the next time or not.
func TestKeptThenNot(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a := f.Node("10.0.0.1")
		h := a.HostWith(100, 0, vswitch.AttachConfig{KeepOpen: true})
		other := a.Host(100)
		check.OK(t, h.At.Detach())
		check.Must(a.Segment(100).Attach(h.Pipe, 0))(t)
		f.Settle()
		h.Send(mem.Unicast(h, other, "back"))
		other.Want(mem.Unicast(h, other, "back"))
	})
}

// Who is taken off the last flood list of a VTEP that takes listed peers only is
// refused from then on, however much it sends.
func TestDelisted(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a, b := f.NodeWith("10.0.0.1", nil, &vtep.Config{Peers: vtep.ListedOnly}), f.Node("10.0.0.2")
		f.Mesh(100, a, b)
		h1, h2 := a.Host(100), b.Host(100)
		check.OK(t, a.VTEP.SetFlood(100))
		for range 6 {
			h2.Send(mem.ARPRequest(h2, h1.IP))
			time.Sleep(10 * time.Second)
		}
		h1.Want()
		a.WantDrops(map[string]uint64{"unknown-peer": 6})
	})
}

// ForwardBridgeGroup is for the switch's own frames too.
func TestInjectBridgeGroup(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a := f.Node("10.0.0.1")
		h := a.Host(100)
		v := check.Must(a.VSI(100, &vswitch.VSIConfig{ForwardBridgeGroup: true}))(t)
		b := mem.Ethernet(frame.MACFrom(0x0180c200000e), h.MAC, 0x88cc, nil)
		x := frame.Make(b)
		a.Inject(v, &x)
		h.Want(b)
	})
}

// A frame on its way while the group of a tunnel changes from one to another does not
// go back into the tunnel: neither setting is a hub's.
func TestGroupChange(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a, b, c := f.Node("10.0.0.1"), f.Node("10.0.0.2"), f.Node("10.0.0.3")
		f.Mesh(100, a, b, c)
		h1, h3 := a.Host(100), c.Host(100)
		gate := &gate{came: make(chan bool), open: make(chan bool)}
		tunnel := b.Segment(100).Attachments()[0]
		check.OK(t, tunnel.Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: gate}}))
		check.OK(t, h1.Pipe.Send(mem.ARPRequest(h1, h3.IP)))
		<-gate.came // the frame is in b's hands
		check.OK(t, tunnel.Configure(vswitch.AttachConfig{Group: 7}))
		gate.open <- true
		h3.Want(mem.ARPRequest(h1, h3.IP)) // once
	})
}

// gate holds a frame up, which no real stage may.
type gate struct{ came, open chan bool }

func (g *gate) Process(*frame.Frame, frame.At) frame.Verdict {
	g.came <- true
	<-g.open
	return frame.Continue
}
