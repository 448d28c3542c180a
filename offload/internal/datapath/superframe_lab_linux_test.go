package datapath

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A UDP superframe may be longer than a datagram with the tunnel's headers: then it is a miss.
func TestLabLongest(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "192.0.2.1/24,2001:db8::1/64", b, "192.0.2.2/24,2001:db8::2/64")
	s1, s2 := newSite(n, a, t, vethPeer, 1), newSite(n, b, t, vethPeer, 2)
	a.TxOff("eth0")
	m1, m2 := mac(t, s1.g, s1.dev), mac(t, s2.g, s2.dev)
	knows(s1.g, s1.dev, 2, m2)
	knows(s2.g, s2.dev, 1, m1)
	s1.flows(false, 2, m2)
	s2.flows(false, 1, m1)
	s1.g.Ready()
	s2.g.Ready()
	const seg = 1000
	send := s1.g.Datagrams(s2.g, "192.168.7.2:0")
	fits := 0xffff - 36 - 42 // IP, UDP, VXLAN and Ethernet headers, and those of the frame
	send(fits, seg)
	check.Equal(t, "frames too long", check.Must(s1.d.Misses())(t)[Length], 0)
	var c net.Conn
	var err error
	s1.g.Do(func() { c, err = net.Dial("udp", "192.168.7.2:9") })
	check.OK(t, err)
	defer c.Close()
	raw, err := c.(syscall.Conn).SyscallConn()
	check.OK(t, err)
	check.OK(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, seg) }))
	check.OK(t, err)
	_, err = c.Write(make([]byte, fits+1))
	check.OK(t, err)
	check.Equal(t, "frames too long", check.Must(s1.d.Misses())(t)[Length], 1)
}

// Where a socket that wants merged datagrams is open, packets of the tunnel come merged: they are left to it, with nothing
// changed.
func TestLabMerged(t *testing.T) {
	n := netns.New(t)
	h, k := n.Host("h"), n.Host("k")
	n.Link(h, "192.0.2.1/24", k, "192.0.2.2/24")
	h.Run("ethtool", "-K", "eth0", "gro", "on")
	s := newSite(n, h, t, vethEgress, 1)
	far, near := macFar, mac(t, s.g, s.dev)
	s.flows(false, 2, far)
	var u net.PacketConn
	var err error
	h.Do(func() { u, err = net.ListenPacket("udp4", "192.0.2.1:4789") })
	check.OK(t, err)
	defer u.Close()
	raw, err := u.(syscall.Conn).SyscallConn()
	check.OK(t, err)
	check.OK(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, 1) }))
	check.OK(t, err)
	var c *net.UDPConn
	k.Do(func() {
		c, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:4789")))
	})
	check.OK(t, err)
	defer c.Close()
	raw, err = c.SyscallConn()
	check.OK(t, err)
	one := vxlan(shape{dst: near, src: far, proto: 6, size: 400}.bytes())
	check.OK(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, len(one)) }))
	check.OK(t, err)
	var run []byte
	for range 10 {
		run = append(run, one...)
	}
	// A run of ten that the veth passes as one superframe, as GRO makes it of packets from a card.
	_, err = c.Write(run)
	check.OK(t, err)
	buf := make([]byte, 1<<16)
	size, _, err := u.ReadFrom(buf)
	check.OK(t, err)
	check.True(t, string(buf[:size]) == string(run), "%d bytes of %d arrive", size, len(run))
	m := check.Must(s.d.Misses())(t)
	check.Equal(t, "merged", m[Merged], 1)
	packets, _, _ := s.d.Slot(1).Counters()
	check.Equal(t, "carried", packets, 0)
	// One alone does not overtake them; after a while it is carried, and the socket does not get it.
	_, err = c.Write(one)
	check.OK(t, err)
	size, _, err = u.ReadFrom(buf)
	check.OK(t, err)
	check.True(t, string(buf[:size]) == string(one), "%d bytes arrive, not one packet", size)
	h.Until("a frame is carried", func() bool {
		check.Must(c.Write(one))(t)
		packets, _, _ := s.d.Slot(1).Counters()
		return packets > 0
	})
}
