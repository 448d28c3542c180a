package chaos

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// innerIP is an IPv4 packet of 28 bytes, which says nothing about its payload.
func innerIP() []byte {
	b := make([]byte, 28)
	copy(b, []byte{0x45, 0, 0, 28, 0, 1, 0, 0, 64, 253, 0, 0, 192, 0, 2, 7, 192, 0, 2, 8})
	var s uint32
	for i := 0; i < 20; i += 2 {
		s += uint32(b[i])<<8 | uint32(b[i+1])
	}
	s = s>>16 + s&0xffff
	b[10], b[11] = ^byte(s>>8), ^byte(s)
	return b
}

// innerFrame is a frame between two hosts that exist nowhere else.
func innerFrame() []byte {
	return mem.Ethernet(frame.MAC{2, 0, 0, 0, 0, 8}, frame.MAC{2, 0, 0, 0, 0, 7}, 0x0800, innerIP())
}

// flipped returns each packet that differs from b in one bit.
func flipped(b []byte, each func(bit int, packet []byte)) {
	for bit := range 8 * len(b) {
		p := append([]byte(nil), b...)
		p[bit/8] ^= 0x80 >> (bit % 8)
		each(bit, p)
	}
}

// Every bit of a tunnel packet flipped, one at a time: each packet comes out of the VTEP once,
// as a frame or with the reason why not, whatever the encapsulation; what is behind it comes
// through.
func TestFlippedBits(t *testing.T) {
	vx, gpe, gpeIP := make([]byte, encap.VXLANLen), make([]byte, encap.VXLANLen), make([]byte, encap.VXLANLen)
	encap.PutVXLAN(vx, vni)
	encap.PutGPE(gpe, vni, frame.Ethernet, false)
	encap.PutGPE(gpeIP, vni, frame.IPv4, false)
	for _, c := range []struct {
		name string
		kind encap.Type
		tag  uint32
		good []byte
		ok   int // how many flips the VTEP cannot see; -1 = some
	}{
		// All of the header but the I flag and the VNI, and all of the frame: MACs are the
		// switch's to judge.
		{"VXLAN", encap.TypeVXLAN, vni, append(vx, innerFrame()...), 63 - 24 + 8*60},
		{"GPE", encap.TypeGPE, vni, append(gpe, innerFrame()...), -1},
		{"GPE, IPv4", encap.TypeGPE, vni, append(gpeIP, innerIP()...), -1},
		{"IP-in-IP", encap.TypeIPIP, 0, innerIP(), -1},
	} {
		for _, addr := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
			t.Run(fmt.Sprint(c.name, "/", addr[0]), func(t *testing.T) {
				n := memory.NewNetwork(nil)
				defer n.Close()
				on := func(a string) (u *memory.Underlay, e frame.Endpoint) {
					var err error
					if at := netip.MustParseAddr(a); c.kind == encap.TypeIPIP {
						u, err = n.ListenIP(at, nil)
					} else {
						u, err = n.Listen(netip.AddrPortFrom(at, mem.Port(c.kind)), nil)
					}
					check.OK(t, err)
					e, _ = frame.EndpointFrom(u.LocalAddr())
					return u, e
				}
				u, to := on(addr[0])
				far, peer := on(addr[1])
				v := check.Must(vtep.New(&vtep.Config{Type: c.kind}, u))(t)
				defer v.Close()
				check.Must(v.AddPeer(netip.AddrPortFrom(peer.AddrPort().Addr(), 0)))(t)
				check.OK(t, v.Control().Open(c.tag))
				r, b := v.Readers()[0], frame.NewBatch(nil)
				refused := uint64(0)
				through := func(p []byte) frame.Reason {
					check.OK(t, far.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{p}, To: []frame.Endpoint{to}}}))
					if far.Stats().Lost() > refused { // no IP packet: the far end does not send it
						refused++
						return frame.BadHeader
					}
					if err := r.Read(b); err != nil || len(b.Frames) != 1 {
						t.Fatalf("%v, %d frames", err, len(b.Frames))
					}
					return b.Frames[0].Drop
				}
				ok, reasons := 0, map[string]int{}
				flipped(c.good, func(bit int, p []byte) {
					why := through(p)
					if why == frame.NotDropped {
						ok++
					}
					reasons[why.String()]++
				})
				t.Log(reasons)
				if c.ok >= 0 && ok != c.ok {
					t.Errorf("%d came through, want %d", ok, c.ok)
				}
				check.True(t, ok != 0 && len(reasons) >= 2, "%v", reasons)
			})
		}
	}
}

// The same through a switch, for VXLAN: each packet is either at the host or counted, for the
// reason that its bit gives; no bit teaches the switch anything about the host that is there;
// and afterwards that one is reached.
func TestFlippedBitsSwitch(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a := f.Node("10.0.0.1")
		f.Mesh(vni, a)
		h := a.Host(vni)
		far := check.Must(f.Listen(netip.MustParseAddr("10.0.0.2"), encap.TypeVXLAN))(t)
		defer far.Close()
		to, _ := frame.EndpointFrom(a.Addr)
		send := func(p []byte) {
			check.OK(t, far.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{p}, To: []frame.Endpoint{to}}}))
			f.Settle()
		}
		h.Send(mem.ARPRequest(h, h.IP)) // is known
		head := make([]byte, encap.VXLANLen)
		encap.PutVXLAN(head, vni)
		inner := mem.Ethernet(h.MAC, frame.MAC{2, 0, 0, 0, 0, 7}, 0x88b5, []byte("text"))
		want := map[string]uint64{}
		before := a.Drops()
		delivered := 0
		flipped(append(head, inner...), func(bit int, p []byte) {
			send(p)
			got := h.Got()
			delivered += len(got)
			switch {
			case bit == 4:
				want["no-vni-flag"]++
			case bit >= 32 && bit < 56:
				want["unknown-vni"]++
			case bit == 64+48+7:
				want["bad-source-mac"]++
			case len(got) != 1:
				t.Errorf("bit %d of byte %d: %d frames arrived, %v", bit%8, bit/8, len(got), a.Drops())
			}
		})
		for reason, n := range a.Drops() {
			if n -= before[reason]; n != want[reason] {
				t.Errorf("%d drops %q, want %d", n, reason, want[reason])
			}
		}
		if all := 8 * (len(head) + len(inner)); delivered+1+24+1 != all {
			t.Errorf("%d of %d were delivered", delivered, all)
		}
		send(append(head, inner...))
		h.Want(inner)
	})
}

// A network that loses, doubles and reorders: the tunnel's ends and the network agree about
// every datagram, and when it is good again everything arrives, once and in order.
func TestFaultyMemory(t *testing.T) {
	for _, addr := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		mem.Run(t, &memory.NetworkConfig{Seed: 3}, func(f *mem.Fabric) {
			a, b := f.Node(addr[0]), f.Node(addr[1])
			f.Mesh(vni, a, b)
			h1, h2 := a.Host(vni), b.Host(vni)
			h1.Send(mem.ARPRequest(h1, h2.IP))
			h2.Send(mem.ARPReply(h2, h1))
			h1.Got()
			h2.Got()
			f.Net.SetDefault(memory.Link{Loss: .2, Duplicate: .2, Reorder: .2})
			const n = 500
			got := 0
			for i := range n {
				h1.Send(mem.Unicast(h1, h2, fmt.Sprint("a", i)))
				h2.Send(mem.Unicast(h2, h1, fmt.Sprint("b", i)))
				got += len(h1.Got()) + len(h2.Got())
			}
			f.Net.SetDefault(memory.Link{})
			got += len(h1.Got()) + len(h2.Got())
			st := f.Net.Stats()
			if want := 2*n - int(st.Lost) + int(st.Duplicated); got != want || st.Lost == 0 || st.Duplicated == 0 || st.Reordered == 0 || st.InFlight != 0 {
				t.Errorf("%d arrived, want %d: %+v", got, want, st)
			}
			a.WantDrops(nil)
			b.WantDrops(nil)
			for i := range 10 {
				h1.Send(mem.Unicast(h1, h2, fmt.Sprint("good ", i)))
				h2.Want(mem.Unicast(h1, h2, fmt.Sprint("good ", i)))
			}
			f.WantQuiet()
		})
	}
}

// A node moves to another address and back while hosts talk: frames to the old address are
// lost on the network and counted there, the first one from the new address makes a peer of
// it, and MACs follow.
func TestSetUnderlayMemory(t *testing.T) {
	for _, addr := range [][3]string{{"10.0.0.1", "10.0.0.11", "10.0.0.2"}, {"fd00::1", "fd00::11", "fd00::2"}} {
		mem.Run(t, nil, func(f *mem.Fabric) {
			a, b := f.Node(addr[0]), f.Node(addr[2])
			f.Mesh(vni, a, b)
			h1, h2 := a.Host(vni), b.Host(vni)
			talk := func(i int) {
				h1.Send(mem.Unicast(h1, h2, fmt.Sprint("there ", i)))
				h2.Want(mem.Unicast(h1, h2, fmt.Sprint("there ", i)))
				h2.Send(mem.Unicast(h2, h1, fmt.Sprint("back ", i)))
				h1.Want(mem.Unicast(h2, h1, fmt.Sprint("back ", i)))
			}
			talk(0)
			for i, to := range []string{addr[1], addr[0], addr[1], addr[0]} {
				none := f.Net.Stats().NoListener
				u, err := f.Listen(netip.MustParseAddr(to), encap.TypeVXLAN)
				if err == nil {
					err = a.VTEP.SetUnderlay(u)
				}
				check.OK(t, err)
				h2.Send(mem.Unicast(h2, h1, "lost"))
				h1.Want()
				if n := f.Net.Stats().NoListener - none; n != 1 {
					t.Errorf("move %d: %d found nobody, want 1", i, n)
				}
				talk(i + 1)
			}
			// From itself, as multicast may bring: the address it has now.
			self := check.Must(f.Net.Listen(netip.AddrPortFrom(netip.MustParseAddr(addr[0]), 1), nil))(t)
			head := make([]byte, encap.VXLANLen)
			encap.PutVXLAN(head, vni)
			to, _ := frame.EndpointFrom(a.Addr)
			_ = self.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{head, innerFrame()}, To: []frame.Endpoint{to}}})
			a.WantDrops(map[string]uint64{"own-address": 1})
			self.Close()
			f.WantQuiet()
		})
	}
}

// Nobody reads one port: what is beyond its queue is dropped and counted, the hosts beside it
// get everything, and when it is read again it gets what comes.
func TestStalledPipe(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a, b := f.Node("10.0.0.1"), f.Node("10.0.0.2")
		f.Mesh(vni, a, b)
		stalled, other, far := a.Host(vni), a.Host(vni), b.Host(vni)
		stalled.Send(mem.ARPRequest(stalled, far.IP)) // is known
		other.Want(mem.ARPRequest(stalled, far.IP))
		far.Want(mem.ARPRequest(stalled, far.IP))
		const n, queue = 1000, 256
		for i := range n {
			far.Send(mem.Ethernet(frame.Broadcast, far.MAC, 0x88b5, fmt.Append(nil, i)))
			other.Want(mem.Ethernet(frame.Broadcast, far.MAC, 0x88b5, fmt.Append(nil, i)))
		}
		a.WantDrops(map[string]uint64{"port-full": n - queue})
		b.WantDrops(nil)
		check.Equal(t, "were in the queue", len(stalled.Got()), queue)
		far.Send(mem.Unicast(far, stalled, "again"))
		stalled.Want(mem.Unicast(far, stalled, "again"))
		f.WantQuiet()
	})
}
