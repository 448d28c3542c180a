package arp_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/framing"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// An end is a gateway that takes every frame it is shown.
type end struct{ frames int }

func (e *end) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	e.frames++
	return frame.Consume
}

// heads are the framings that a receiver might open, and an EtherType that is neither type nor
// length.
var heads = slices.Concat([][]byte{nil, {5, 0xfe}}, framing.Plain, framing.Odd, [][]byte{
	slices.Concat(framing.Plain[1], framing.Plain[0]), // Q-in-Q
	slices.Concat(framing.Plain[0], framing.Plain[3]), // SNAP behind a tag
	slices.Concat(framing.Plain[3], framing.Plain[0]), // a tag in SNAP
})

func six(next byte) []byte { // from a link-local address to a solicited-node group, hop limit 255
	b := make([]byte, 40)
	b[0], b[5], b[6], b[7], b[8], b[9], b[23], b[24], b[25], b[39] = 0x60, 64, next, 255, 0xfe, 0x80, 1, 0xff, 2, 1
	return b
}

// packets are what a host can become another one's gateway, or its victim, with. ICMPv6 has
// no right checksum: not to be forwarded is not to be looked at.
func packets(from frame.MAC) map[string]struct {
	typ  uint16
	body []byte
} {
	type packet = struct {
		typ  uint16
		body []byte
	}
	arpOf := func(op byte) []byte {
		b := append([]byte{0, 1, 8, 0, 6, 4, 0, op}, from[:]...)
		return append(b, 169, 254, 1, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2)
	}
	nd := func(typ byte) []byte {
		b := make([]byte, 64)
		b[0] = typ
		return b
	}
	ext := func(kind byte) []byte { return append(six(kind), 58, 0, 1, 4, 0, 0, 0, 0) }
	four := []byte{0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 67, 0, 68, 0, 8, 0, 0}
	return map[string]packet{
		"ARP answer":           {0x0806, arpOf(2)},
		"ARP announcement":     {0x0806, append(arpOf(1)[:24], 169, 254, 1, 1)},
		"advertisement":        {0x86dd, append(six(58), nd(136)...)},
		"router advertisement": {0x86dd, append(six(58), nd(134)...)},
		"redirect":             {0x86dd, append(six(58), nd(137)...)},
		"router advertisement behind hop-by-hop options":  {0x86dd, append(ext(0), nd(134)...)},
		"router advertisement behind destination options": {0x86dd, append(ext(60), nd(134)...)},
		"router advertisement in a fragment":              {0x86dd, append(append(six(44), 58, 0, 0, 1, 0, 0, 0, 1), nd(134)...)},
		"advertisement behind two headers":                {0x86dd, append(append(six(60), 0, 0, 1, 4, 0, 0, 0, 0, 58, 0, 1, 4, 0, 0, 0, 0), nd(136)...)},
		"IPv4":                                            {0x0800, four},
		"IPv6":                                            {0x86dd, append(six(17), 0, 67, 0, 68, 0, 8, 0, 0)},
	}
}

// A member in mode Access reaches the gateway, and nobody else at layer 2: not in what it
// says, nor in how it frames it, nor by the MAC it sends to, whatever else is configured.
func TestAccessReachesNobodyElse(t *testing.T) {
	gate := frame.MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
	for _, ingress := range []vswitch.Stage{nil, arp.OnlyIP{}} {
		for _, vlan := range []vswitch.VLANMode{vswitch.VLANDiscard, vswitch.VLANStrip, vswitch.VLANPass} {
			t.Run(fmt.Sprintf("%T, VLANs %v", ingress, vlan), func(t *testing.T) {
				mem.Run(t, nil, func(f *mem.Fabric) {
					n, far := f.Node("192.0.2.1"), f.Node("192.0.2.2")
					f.Mesh(100, n, far)
					vsi := n.Segment(100)
					table := check.Must(arp.NewTable(nil))(t)
					r := check.Must(arp.NewResponder(&arp.Config{Table: table, Mode: arp.Access, Locate: vsi.FDB().Lookup}))(t)
					g := new(end)
					must(t, vsi.Configure(vswitch.VSIConfig{InnerVLAN: vlan, ForwardBridgeGroup: true, ForwardPinned: true, Slots: vswitch.Slots{
						Ingress: ingress, Neighbour: r, Gateway: g,
					}}))
					must(t, vsi.FDB().Set(gate, 0, 0))
					a, b, c := n.Host(100), n.Host(100), n.HostWith(100, 0, vswitch.AttachConfig{Slots: vswitch.Slots{Neighbour: vswitch.Chain(r)}})
					d := far.Host(100)
					for n, h := range []*mem.Host{a, b, c, d} { // where they are is known from here on
						h.Send(mem.Ethernet(gate, h.MAC, 0x0800, []byte{0x45}))
						if g.frames != n+1 {
							t.Fatal("the gateway is not reached")
						}
					}
					for name, p := range packets(a.MAC) {
						for _, head := range heads {
							for _, to := range []frame.MAC{
								b.MAC, c.MAC, d.MAC, {2, 9, 9, 9, 9, 9}, frame.Broadcast, {0x33, 0x33, 0, 0, 0, 1}, {1, 0, 0x5e, 0, 0, 1}, {1, 0x80, 0xc2, 0, 0, 3},
							} {
								for _, from := range []*mem.Host{a, c} {
									must(t, from.Pipe.Send(framing.Put(mem.Ethernet(to, from.MAC, p.typ, p.body), head)))
								}
							}
							f.Settle()
							for _, h := range []*mem.Host{a, b, c, d} {
								if got := h.Got(); len(got) != 0 {
									t.Errorf("%s behind % x: % x at %s", name, head, got[0], h.Name())
								}
							}
						}
					}
				})
			})
		}
	}
}

var must = check.OK
