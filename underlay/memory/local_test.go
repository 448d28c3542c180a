package memory

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A Memory moves as a UDP does: what waits for its Readers stays, what is sent to the old
// address finds nobody, and the old address is free.
func TestSetLocal(t *testing.T) {
	for _, c := range []struct{ name, one, two, peer, other string }{
		{"IPv4", "10.0.0.1", "10.0.0.2", "10.0.0.9", "fd00::2"},
		{"IPv6", "fd00::1", "fd00::2", "fd00::9", "10.0.0.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := NewNetwork(nil)
			defer n.Close()
			on := func(a string) *Underlay {
				m, err := n.Listen(netip.AddrPortFrom(netip.MustParseAddr(a), 4789), nil)
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			m, peer := on(c.one), on(c.peer)
			at := func(a string) frame.Endpoint {
				return endpoint(t, netip.AddrPortFrom(netip.MustParseAddr(a), 4789))
			}
			send(t, peer, to("before", 0, at(c.one)))
			if err := m.SetLocal(netip.MustParseAddr(c.two)); err != nil {
				t.Fatal(err)
			}
			send(t, peer, to("lost", 0, at(c.one)), to("after", 0, at(c.two)))
			b := frame.NewBatch(nil)
			if err := m.Readers()[0].Read(b); err != nil || len(b.Frames) != 2 ||
				string(b.Frames[0].Bytes()) != "before" || string(b.Frames[1].Bytes()) != "after" {
				t.Fatalf("%v, %d frames", err, len(b.Frames))
			}
			if st := n.Stats(); st.NoListener != 1 || st.Delivered != 2 {
				t.Errorf("%+v", st)
			}
			send(t, m, to("answer", 0, at(c.peer)))
			if err := peer.Readers()[0].Read(b); err != nil || b.Outer[0].Src.Host() != at(c.two).Host() {
				t.Errorf("%v, from %v", err, b.Outer[0].Src)
			}
			third := on(c.one) // which is free
			for addr, want := range map[string]error{c.one: syscall.EADDRINUSE, "0.0.0.0": nil, "::": nil, c.other: nil, "224.0.0.1": nil} {
				if err := m.SetLocal(netip.MustParseAddr(addr)); err == nil || want != nil && !errors.Is(err, want) {
					t.Errorf("%s: %v", addr, err)
				}
			}
			if want := netip.AddrPortFrom(netip.MustParseAddr(c.two), 4789); m.LocalAddr() != want {
				t.Errorf("LocalAddr %v", m.LocalAddr())
			}
			third.Close()
			m.Close()
			if err := m.SetLocal(netip.MustParseAddr(c.one)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
			on(c.one)
			on(c.two)
		})
	}
}

// A local address is one host's.
func TestLocalAddresses(t *testing.T) {
	n := NewNetwork(nil)
	u := member(t, n, "10.0.0.1:4789", nil)
	for _, s := range []string{"255.255.255.255", "0.0.0.1", "224.0.0.1", "::ffff:255.255.255.255", "ff02::1"} {
		a := netip.MustParseAddr(s)
		_, listen := n.Listen(netip.AddrPortFrom(a, 4789), nil)
		for what, err := range map[string]error{"Listen": listen, "SetLocal": u.SetLocal(a)} {
			if err == nil || !strings.HasPrefix(err.Error(), "memory: local address "+a.Unmap().String()) || !strings.Contains(err.Error(), "; allowed are ") {
				t.Errorf("%s %v: %v", what, a, err)
			}
		}
	}
}
