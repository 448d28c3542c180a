package vectors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A side is an address family on the loopback interface.
type side struct {
	ip6      bool
	us, them netip.Addr
}

var sides = map[string]side{
	"IPv4": {false, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.86.0.2")},
	"IPv6": {true, netip.MustParseAddr("::1"), netip.MustParseAddr("::1")},
}

// A sniffer reads UDP packets with their headers: over IPv4 the IP header too.
type sniffer struct {
	t    *testing.T
	fd   int
	side side
	port uint16 // only packets to or from this one
}

func sniff(t *testing.T, s side, port uint16) *sniffer {
	t.Helper()
	family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Addr: [4]byte{127, 86, 0, 2}})
	if s.ip6 {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Addr: s.them.As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if errors.Is(err, unix.EPERM) { // a raw socket needs CAP_NET_RAW
		netns.RequireRoot(t)
	}
	if err == nil {
		t.Cleanup(func() { unix.Close(fd) })
		err = unix.Bind(fd, sa)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5})
	}
	check.OK(t, err)
	return &sniffer{t, fd, s, port}
}

// next returns the next packet's IP header (nil over IPv6) and UDP packet.
func (s *sniffer) next() (ip, udp []byte) {
	s.t.Helper()
	for {
		b := make([]byte, 65536)
		n, _, err := unix.Recvfrom(s.fd, b, 0)
		check.OK(s.t, err)
		ip, udp = nil, b[:n]
		if !s.side.ip6 {
			h := int(b[0]&15) * 4
			ip, udp = b[:h], b[h:n]
		}
		if binary.BigEndian.Uint16(udp[2:]) == s.port {
			return ip, udp
		}
	}
}

// tunnel is a VTEP on real sockets, and one peer that is an ordinary socket.
type tunnel struct {
	t     *testing.T
	v     *vtep.VTEP
	peer  *net.UDPConn
	num   uint16
	local netip.AddrPort
}

func newTunnel(t *testing.T, s side, uc *underlay.UDPConfig, vc *vtep.Config) *tunnel {
	t.Helper()
	u := check.Must(underlay.ListenUDP(netip.AddrPortFrom(s.us, 0), uc))(t)
	return newTunnelOver(t, s, u, vc)
}

func newTunnelOver(t *testing.T, s side, u *underlay.UDP, vc *vtep.Config) *tunnel {
	t.Helper()
	v := check.Must(vtep.New(vc, u))(t)
	peer := check.Must(net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.them, 0))))(t)
	t.Cleanup(func() { v.Close(); peer.Close() })
	x := &tunnel{t: t, v: v, peer: peer, local: u.LocalAddr()}
	// A next hop, since over IPv6 there is only ::1: our own address is no peer.
	x.num = check.Must(v.NextHop(x.port(), vni))(t)
	check.OK(t, v.Control().Open(vni))
	return x
}

func (x *tunnel) port() netip.AddrPort {
	a := x.peer.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func (x *tunnel) send(frames ...[]byte) {
	x.t.Helper()
	w := x.v.Writer(0)
	for _, b := range frames {
		f := frame.Make(b)
		out := []frame.Out{{F: &f, Peer: x.num, Tag: vni}}
		if err := w.Write(out); err != nil || out[0].Drop != 0 {
			x.t.Fatal(err, out[0].Drop)
		}
	}
}

// recv returns one datagram and the source port it came from.
func (x *tunnel) recv() ([]byte, uint16) {
	x.t.Helper()
	b := make([]byte, 2048)
	x.peer.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, from, err := x.peer.ReadFromUDPAddrPort(b)
	check.OK(x.t, err)
	return b[:n], from.Port()
}

// before returns how many frames come out of a reader in front of one that ends in mark, which
// is sent now.
func before(t *testing.T, r frame.Reader, pause func(), from *net.UDPConn, to netip.AddrPort) (n int) {
	t.Helper()
	mark := eth(nobody, rmac(1), "mark")
	check.Must(from.WriteToUDPAddrPort(vx(vni, mark), to))(t)
	timer := time.AfterFunc(5*time.Second, pause)
	defer timer.Stop()
	for b := frame.NewBatch(nil); ; {
		check.OK(t, r.Read(b))
		for i := range b.Frames {
			if bytes.HasSuffix(b.Frames[i].Bytes(), mark) {
				return n
			}
			if b.Frames[i].Drop == 0 {
				n++
			}
		}
	}
}
