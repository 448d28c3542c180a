package afpacket

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// Groups of a packet underlay: errors, the last Leave, Close.
func TestGroupErrors(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		p := v.packet(nil)
		group, other := "239.1.1.1", "ff05::1"
		if v.IP6 {
			group, other = other, group
		}
		for _, g := range []string{v.At(2, 0).Addr().String(), other} {
			if err := p.Join(netip.MustParseAddr(g)); err == nil || !strings.HasPrefix(err.Error(), "afpacket: ") {
				t.Errorf("joined %s: %v", g, err)
			}
		}
		g := netip.MustParseAddr(group)
		if err := p.Leave(g); err == nil {
			t.Error("left what was not joined")
		}
		files := underlaytest.OpenFiles(t)
		for _, f := range []func(netip.Addr) error{p.Join, p.Join, p.Leave, p.Leave} {
			if err := f(g); err != nil {
				t.Error(err)
			}
		}
		if n := underlaytest.OpenFiles(t); n != files {
			t.Errorf("%d descriptors, there were %d", n, files)
		}
		if err := p.Leave(g); err == nil {
			t.Error("left three times")
		}
		if err := p.Join(g); err != nil {
			t.Error(err)
		}
		if s := v.A.IP("maddr", "show", "dev", "eth0"); !strings.Contains(s, group) {
			t.Errorf("groups of the interface: %s", s)
		}
		p.Close()
		if s := v.A.IP("maddr", "show", "dev", "eth0"); strings.Contains(s, group) {
			t.Errorf("after Close: %s", s)
		}
		if err := p.Join(g); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := p.Leave(g); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}
