package afpacket

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// While a packet underlay goes to and fro between two addresses, its Readers and Senders stay
// as they are: at each, in turn, a host that knows neither asks who has it, is answered, and
// reaches it; what is sent comes from there. It stays in its groups, and nobody answers for the
// other address.
func TestSetLocal(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		p, b := v.packet(&Config{Queues: 2}), v.udp(v.B, 2, nil)
		group := map[bool]string{false: "239.1.1.1", true: "ff05::1"}[v.IP6]
		for _, u := range []interface{ Join(netip.Addr) error }{p, b} {
			if err := u.Join(netip.MustParseAddr(group)); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		var at [3]atomic.Uint64 // address 1, address 3, the group
		for _, r := range p.Readers() {
			underlaytest.Reading(t, &wg, r, func(o *frame.Outer) {
				for i, a := range []netip.Addr{v.At(1, 0).Addr(), v.At(3, 0).Addr(), netip.MustParseAddr(group)} {
					if o.Dst.AddrPort().Addr() == a {
						at[i].Add(1)
						return
					}
				}
				t.Errorf("to %v", o.Dst)
			})
		}
		var from atomic.Pointer[netip.Addr]
		for _, r := range b.Readers() {
			underlaytest.Reading(t, &wg, r, func(o *frame.Outer) { a := o.Src.AddrPort().Addr(); from.Store(&a) })
		}
		files := 0
		for round := range 6 {
			n := []int{1, 3}[round%2]
			if round > 0 {
				if err := p.SetLocal(v.At(n, 0).Addr()); err != nil {
					t.Fatal(err)
				}
			}
			if got := p.LocalAddr(); got != v.At(n, 4789) {
				t.Fatalf("LocalAddr %v, want %v", got, v.At(n, 4789))
			}
			here, there := &at[round%2], at[1-round%2].Load()
			was, all := here.Load(), at[2].Load()
			underlaytest.Until(t, "datagrams to it", func() bool {
				send(t, b, to("x", 0, v.End(n)), to("to all", 0, endpoint(t, netip.AddrPortFrom(netip.MustParseAddr(group), 4789))))
				return here.Load() > was && at[2].Load() > all
			})
			underlaytest.Until(t, "datagrams from it", func() bool {
				send(t, p, to("y", 0, v.End(2)))
				a := from.Load()
				return a != nil && *a == v.At(n, 0).Addr()
			})
			other := v.At([]int{3, 1}[round%2], 0).Addr()
			neigh := func(a netip.Addr) string { return v.B.IP("neigh", "show", "to", a.String(), "dev", "eth0") }
			if !strings.Contains(neigh(v.At(n, 0).Addr()), v.A.MAC("eth0")) {
				t.Errorf("of %v is known: %q", v.At(n, 0).Addr(), neigh(v.At(n, 0).Addr()))
			}
			v.B.IP("neigh", "flush", "to", other.String(), "dev", "eth0")
			send(t, b, to("nobody", 0, v.End([]int{3, 1}[round%2])))
			if s := neigh(other); strings.Contains(s, "lladdr") {
				t.Errorf("somebody answers for %v: %q", other, s)
			}
			if got := at[1-round%2].Load(); got != there {
				t.Errorf("round %d: %d datagrams to the other address", round, got-there)
			}
			switch n := underlaytest.OpenFiles(t); round {
			case 1:
				files = n
			case 5:
				if n != files {
					t.Errorf("%d descriptors, there were %d", n, files)
				}
			}
		}
		p.Close()
		b.Close()
		wg.Wait()
		if err := p.SetLocal(v.At(1, 0).Addr()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// On an error nothing has changed.
func TestSetLocalErrors(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		gateway := v.At(7, 0).Addr()
		p, b := v.packet(&Config{Gateway: gateway}), v.udp(v.B, 2, nil)
		files := underlaytest.OpenFiles(t)
		far, other, group, loop := "10.10.0.1", "fd09::3", "239.1.1.1", "127.0.0.1"
		if v.IP6 {
			far, other, group, loop = "fd10::1", "10.9.0.3", "ff05::1", "::1"
		}
		for addr, word := range map[string]string{
			far: "Config.Prefix", other: "family", group: "multicast", loop: "one host", gateway.String(): "Config.Gateway",
			v.At(1, 0).Addr().String(): "",
		} {
			err := p.SetLocal(netip.MustParseAddr(addr))
			if (err == nil) != (word == "") || err != nil && (!strings.Contains(err.Error(), word) || !strings.HasPrefix(err.Error(), "afpacket: ")) {
				t.Errorf("%s: %v", addr, err)
			}
			if p.LocalAddr() != v.At(1, 4789) {
				t.Errorf("%s: LocalAddr %v", addr, p.LocalAddr())
			}
		}
		if n := underlaytest.OpenFiles(t); n != files {
			t.Errorf("%d descriptors, there were %d", n, files)
		}
		warm(t, v, p, b)
	})
}

// A set prefix says who is on the link, whatever the interface has: the address may be any.
func TestSetLocalOfSetPrefix(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		far := "10.10.0.1"
		if v.IP6 {
			far = "fd10::1"
		}
		p, b := v.packet(&Config{Prefix: netip.PrefixFrom(v.At(0, 0).Addr(), 24)}), v.udp(v.B, 2, nil)
		if err := p.SetLocal(netip.MustParseAddr(far)); err != nil {
			t.Fatal(err)
		}
		v.B.IP("route", "add", fmt.Sprint(far), "dev", "eth0")
		send(t, p, to("from afar", 0, v.End(2)))
		if got := receive(t, b, 1)[0]; got.Payload != "from afar" || got.Outer.Src.AddrPort().Addr().String() != far {
			t.Errorf("%+v", got)
		}
	})
}

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
