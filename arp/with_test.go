package arp_test

import (
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// An attachment's mode is in the place of its segment's, not in front of it: one that leaves
// everything to others is not answered, nor confined, by the segment's.
func TestWithTakesThePlace(t *testing.T) {
	for _, c := range []struct {
		segment, own    arp.Mode
		usual, answered bool // whether a member like the segment is answered, and one of its own mode
	}{{arp.Suppress, arp.Off, true, false}, {arp.Off, arp.Suppress, false, true}, {arp.Access, arp.Off, true, false}, {arp.Off, arp.Access, false, true}} {
		t.Run(c.segment.String()+" and "+c.own.String(), func(t *testing.T) {
			mem.Run(t, nil, func(f *mem.Fabric) {
				n, far := f.Node("192.0.2.1"), f.Node("192.0.2.2")
				f.Mesh(100, n, far)
				vsi := n.Segment(100)
				table := check.Must(arp.NewTable(nil))(t)
				r := check.Must(arp.NewResponder(&arp.Config{Table: table, Mode: c.segment, Locate: vsi.FDB().Lookup}))(t)
				must(t, vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: r}}))
				own := check.Must(r.With(c.own))(t)
				a, b, d := n.Host(100), n.HostWith(100, 0, vswitch.AttachConfig{Slots: vswitch.Slots{Neighbour: own}}), far.Host(100)
				d.Send(mem.ARPRequest(d, a.IP)) // d is known
				f.Settle()
				for _, h := range []*mem.Host{a, b, d} {
					h.Got()
				}
				for h, want := range map[*mem.Host]bool{a: c.usual, b: c.answered} {
					before := total(r.Stats())
					must(t, h.Pipe.Send(mem.ARPRequest(h, d.IP)))
					f.Settle()
					if got := len(h.Got()) > 0; got != want {
						t.Errorf("%s is answered: %v, want %v", h.Name(), got, want)
					}
					if got := len(d.Got()) > 0; got == want {
						t.Errorf("of %s's question the other end hears: %v", h.Name(), got)
					}
					if n := total(r.Stats()) - before; n != 1 {
						t.Errorf("%s's question is counted %d times", h.Name(), n)
					}
				}
				mode := map[*mem.Host]arp.Mode{a: c.segment, b: c.own}
				for h, m := range mode {
					must(t, h.Pipe.Send(mem.Ethernet(d.MAC, h.MAC, 0x0800, make([]byte, 46))))
					f.Settle()
					if got := len(d.Got()) > 0; got == (m == arp.Access) {
						t.Errorf("%s, mode %v, reaches another host: %v", h.Name(), m, got)
					}
				}
			})
		})
	}
}

func total(s arp.Stats) (n uint64) {
	for _, c := range s.ARP {
		n += c
	}
	return n
}
