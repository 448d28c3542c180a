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
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

var udpRows = []row{
	{id: "1.golden", name: "UDP sockets", sockets: func(t *testing.T, s side) {
		x := newTunnel(t, s, nil, nil)
		x.send(in1)
		b, _ := x.recv()
		check.True(t, bytes.Equal(b, vx(vni, in1)), "% x", b)
	}},
	{id: "1.superframe-finished", name: "UDP sockets", only: "IPv4", sockets: func(t *testing.T, s side) {
		x := newTunnel(t, s, &underlay.UDPConfig{MaxDatagram: 2048}, &vtep.Config{MTU: 1500})
		text := bytes.Repeat([]byte("vxswitch"), 1<<13)
		r, b := x.v.Readers()[0], frame.NewBatch(nil)
		timer := time.AfterFunc(5*time.Second, x.v.Pause)
		defer timer.Stop()
		for _, k := range leftovers {
			finished := k.frame(rmac(2), 0, 0, text[:60000])
			wrong := bytes.Clone(finished)
			wrong[len(wrong)-1] ^= 1
			for name, in := range map[string][]byte{"right": finished, "wrong": wrong, "unfinished": k.unfinished(finished), "short": finished[:5000]} {
				check.Must(x.peer.WriteToUDPAddrPort(vx(vni, in), x.local))(t)
				check.OK(t, r.Read(b))
				f := &b.Frames[0]
				if name == "unfinished" {
					check.True(t, f.Drop == 0 && bytes.Equal(f.Bytes(), in) && f.SegLen() == x.v.MTU(0), "%v, %s: %v, %d bytes, segments of %d", k, name, f.Drop, f.Len(), f.SegLen())
				} else if f.Drop != frame.TooBig {
					t.Errorf("%v, %s: %v", k, name, f.Drop)
				}
			}
		}
	}},
	{id: "1.srcport-range", name: "UDP default", sockets: func(t *testing.T, s side) {
		udpPorts(t, newTunnel(t, s, nil, nil), 49152, 65535, 16)
	}},
	{id: "1.srcport-range", name: "UDP set", sockets: func(t *testing.T, s side) {
		udpPorts(t, newTunnel(t, s, &underlay.UDPConfig{SrcPorts: underlay.PortRange{Lo: 42000, Hi: 42999}}, nil), 42000, 42999, 16)
	}},
	{id: "1.srcport-flow", name: "UDP", sockets: func(t *testing.T, s side) {
		x := newTunnel(t, s, nil, nil)
		for _, b := range flows(32) {
			x.send(b, b, b)
			_, p := x.recv()
			_, q := x.recv()
			if _, r := x.recv(); p != q || p != r {
				t.Fatalf("ports %d, %d, %d of one flow", p, q, r)
			}
		}
	}},
	checksumRow("1.csum-auto", "IPv4 zero", "IPv4", underlay.ChecksumAuto, true),
	checksumRow("1.csum-auto", "IPv6 computed", "IPv6", underlay.ChecksumAuto, false),
	checksumRow("1.csum-on", "IPv4", "IPv4", underlay.ChecksumOn, false),
	checksumRow("1.csum-on", "IPv6", "IPv6", underlay.ChecksumOn, false),
	checksumRow("1.csum-off", "IPv4", "IPv4", underlay.ChecksumOff, true),
	checksumRow("1.csum-off", "IPv6", "IPv6", underlay.ChecksumOff, true),
	socketsRow("1.csum-peer", "computed", underlay.TxConfig{Checksum: underlay.ChecksumOn}, 49152, 65535, false),
	socketsRow("1.csum-peer", "zero", underlay.TxConfig{Checksum: underlay.ChecksumOff}, 49152, 65535, true),
	socketsRow("1.srcport-peer", "range", underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 43000, Hi: 43099}, Checksum: underlay.ChecksumOn}, 43000, 43099, false),

	{id: "1.csum-run", name: "three segments and a lone datagram", sockets: func(t *testing.T, s side) {
		x := newTunnel(t, s, nil, nil)
		sn := sniff(t, s, x.port().Port())
		f := frame.Make(mem.Ethernet(rmac(1), rmac(2), 0x86dd, append(ipv6(17, 1000, 2000)[:48], make([]byte, 2500)...)))
		p, at := f.Bytes(), uint16(f.Headroom())
		binary.BigEndian.PutUint16(p[14+4:], 2508) // lengths of the whole: a superframe of UDP
		binary.BigEndian.PutUint16(p[14+40+4:], 2508)
		f.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOUDP, Size: 1000, CsumStart: at + 54, CsumOffset: 6, DataStart: at + 62}
		out := []frame.Out{{F: &f, Peer: x.num, Tag: vni}}
		if err := x.v.Writer(0).Write(out); err != nil || out[0].Drop != 0 {
			t.Fatal(err, out[0].Drop)
		}
		x.send(mem.Ethernet(rmac(1), rmac(2), 0x86dd, ipv6(17, 1000, 2000)))
		lens, ports := []int{8 + 62 + 1000, 8 + 62 + 1000, 8 + 62 + 500, 8 + 14 + 60}, map[uint16]bool{}
		for i, want := range lens {
			b, port := x.recv()
			ports[port] = true
			check.True(t, len(b) == want, "datagram %d has %d bytes, want %d", i, len(b), want)
		}
		check.True(t, len(ports) == 1, "one flow from the ports %v", ports)
		_, udp := sn.next()
		check.True(t, binary.BigEndian.Uint16(udp[6:]) != 0, "no checksum in a run")
	}},

	{id: "1.csum-zero-in", name: "accepted over IPv4", only: "IPv4", sockets: func(t *testing.T, s side) {
		check.Equal(t, "frames", zeroIn(t, s, nil), 1)
	}},
	{id: "1.csum-zero-in", name: "refused over IPv6", only: "IPv6", sockets: func(t *testing.T, s side) {
		check.Equal(t, "frames", zeroIn(t, s, nil), 0)
	}},
	{id: "1.csum-zero-in", name: "allowed over IPv6", only: "IPv6", sockets: func(t *testing.T, s side) {
		check.Equal(t, "frames", zeroIn(t, s, &underlay.UDPConfig{ZeroChecksum6RX: true}), 1)
	}},
	{id: "1.csum-wrong-in", name: "wrong, then right", only: "IPv4", sockets: func(t *testing.T, s side) {
		for _, right := range []bool{false, true} {
			x := newTunnel(t, s, nil, nil)
			rawUDP(t, x.local, right)
			n := before(t, x.v.Readers()[0], x.v.Pause, x.peer, x.local)
			check.True(t, (n == 1) == right, "checksum right = %v: %d frames", right, n)
		}
	}},

	ipRow("1.df", "set by default", nil, func(ip []byte) bool { return ip[6]&0xc0 == 0x40 }),
	ipRow("1.df", "unset", &vtep.Config{Header: vtep.Header{DF: vtep.DFUnset}}, func(ip []byte) bool { return ip[6]&0xc0 == 0 }),
	inheritDF("inner DF", 0x4000), inheritDF("no inner DF", 0), inheritDF("an inner fragment", 0x2000),
	ipRow("1.df-inherit", "set for what is not IPv4", &vtep.Config{Header: vtep.Header{DF: vtep.DFInherit}}, func(ip []byte) bool { return ip[6]&0xc0 == 0x40 }),
	ipRow("1.no-fragment", "no fragment is sent", nil, func(ip []byte) bool { return binary.BigEndian.Uint16(ip[6:])&0x3fff == 0 }),
	ipRow("1.ttl", "64 in the IP header", nil, func(ip []byte) bool { return ip[8] == 64 }),
	ipRow("1.ttl", "fixed in the IP header", &vtep.Config{Header: vtep.Header{TTL: 9}}, func(ip []byte) bool { return ip[8] == 9 }),
	ipRow("1.tos", "0 in the IP header", nil, func(ip []byte) bool { return ip[1] == 0 }),
	ipRow("1.tos", "fixed in the IP header", &vtep.Config{Header: vtep.Header{TOS: 0xb8}}, func(ip []byte) bool { return ip[1] == 0xb8 }),
	hopRow("1.ttl", "64 between sockets", nil, 64, 0),
	hopRow("1.ttl", "fixed between sockets", &vtep.Config{Header: vtep.Header{TTL: 9}}, 9, 0),
	hopRow("1.tos", "fixed between sockets", &vtep.Config{Header: vtep.Header{TOS: 0xb8}}, 64, 0xb8),
}

func udpPorts(t *testing.T, x *tunnel, lo, hi uint16, want int) {
	t.Helper()
	seen := map[uint16]bool{}
	for _, b := range flows(512) {
		x.send(b)
		_, p := x.recv()
		seen[p] = true
		check.Need(t, p >= lo && p <= hi, "source port %d", p)
	}
	check.True(t, len(seen) == want, "%d source ports, want %d", len(seen), want)
}

// onWire sends a frame through a tunnel and returns its outer IPv4 header, and UDP.
func onWire(t *testing.T, s side, uc *underlay.UDPConfig, vc *vtep.Config, b []byte) (ip, udp []byte) {
	t.Helper()
	x := newTunnel(t, s, uc, vc)
	sn := sniff(t, s, x.port().Port())
	x.send(b)
	return sn.next()
}

// checksumRow looks at the UDP checksum on the wire.
func checksumRow(id, name, family string, mode underlay.Checksum, zero bool) row {
	return row{id: id, name: name, only: family, sockets: func(t *testing.T, s side) {
		_, udp := onWire(t, s, &underlay.UDPConfig{Checksum: mode}, nil, in1)
		sum := binary.BigEndian.Uint16(udp[6:])
		check.True(t, (sum == 0) == zero, "checksum %#04x", sum)
		check.True(t, bytes.Equal(udp[8:], vx(vni, in1)), "% x", udp[8:])
	}}
}

// socketsRow has a peer with transmit sockets of its own, and then without.
func socketsRow(id, name string, c underlay.TxConfig, lo, hi uint16, zero bool) row {
	return row{id: id, name: name, sockets: func(t *testing.T, s side) {
		u := check.Must(underlay.ListenUDP(netip.AddrPortFrom(s.us, 0), nil))(t)
		x := newTunnelOver(t, s, u, nil)
		n, err := u.Sockets(c)
		if err == nil {
			err = x.v.SetPeers([]vtep.PeerConfig{{Address: s.them, Header: vtep.Header{Sockets: n}}})
		}
		check.OK(t, err)
		sn := sniff(t, s, x.port().Port())
		for _, b := range flows(32) {
			x.send(b)
			_, udp := sn.next()
			if p := binary.BigEndian.Uint16(udp); p < lo || p > hi {
				t.Fatalf("source port %d", p)
			}
			if sum := binary.BigEndian.Uint16(udp[6:]); (sum == 0) != zero {
				t.Fatalf("checksum %#04x", sum)
			}
		}
		check.OK(t, x.v.SetPeers(nil))
		x.send(in1)
		_, udp := sn.next()
		p, sum := binary.BigEndian.Uint16(udp), binary.BigEndian.Uint16(udp[6:])
		check.True(t, p >= 49152 && (sum == 0) != s.ip6, "without: port %d, checksum %#04x", p, sum)
	}}
}

// ipRow looks at the IPv4 header on the wire.
func ipRow(id, name string, cfg *vtep.Config, good func(ip []byte) bool) row {
	return row{id: id, name: name, only: "IPv4", sockets: func(t *testing.T, s side) {
		ip, _ := onWire(t, s, nil, cfg, in1)
		check.True(t, good(ip), "% x", ip)
	}}
}

// inheritDF compares the DF bits of the outer and the inner IPv4 header.
func inheritDF(name string, inner uint16) row {
	return row{id: "1.df-inherit", name: name, only: "IPv4", sockets: func(t *testing.T, s side) {
		cfg := &vtep.Config{Header: vtep.Header{DF: vtep.DFInherit}}
		ip, _ := onWire(t, s, nil, cfg, mem.Ethernet(rmac(1), rmac(2), 0x0800, ipv4(17, inner, 1, 2)))
		check.True(t, uint16(ip[6])<<8&0x4000 == inner&0x4000, "% x", ip)
	}}
}

// hopRow has a second underlay say what arrived.
func hopRow(id, name string, cfg *vtep.Config, ttl, tos uint8) row {
	return row{id: id, name: name, sockets: func(t *testing.T, s side) {
		x := newTunnel(t, s, nil, cfg)
		u := check.Must(underlay.ListenUDP(netip.AddrPortFrom(s.them, 0), nil))(t)
		defer u.Close()
		x.num = check.Must(x.v.NextHop(u.LocalAddr(), vni))(t)
		x.send(in1)
		timer := time.AfterFunc(5*time.Second, u.Pause)
		defer timer.Stop()
		b := frame.NewBatch(nil)
		check.OK(t, u.Readers()[0].Read(b))
		o := b.Outer[0]
		check.True(t, o.TTL == ttl && o.TOS == tos, "TTL %d TOS %#x", o.TTL, o.TOS)
	}}
}

// zeroIn sends a datagram without a checksum to a VTEP, and returns how many frames
// come out.
func zeroIn(t *testing.T, s side, uc *underlay.UDPConfig) int {
	t.Helper()
	u := check.Must(underlay.ListenUDP(netip.AddrPortFrom(s.us, 0), uc))(t)
	defer u.Close()
	from := check.Must(net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.them, 0))))(t)
	defer from.Close()
	level, option := unix.SOL_SOCKET, unix.SO_NO_CHECK
	if s.ip6 {
		level, option = unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX
	}
	check.Must(from.SyscallConn())(t).Control(func(fd uintptr) {
		check.OK(t, unix.SetsockoptInt(int(fd), level, option, 1))
	})
	check.Must(from.WriteToUDPAddrPort(vx(vni, in1), u.LocalAddr()))(t)
	summed := check.Must(net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.them, 0))))(t)
	defer summed.Close()
	return before(t, u.Readers()[0], u.Pause, summed, u.LocalAddr())
}

// rawUDP sends a datagram whose checksum is right or wrong.
func rawUDP(t *testing.T, dst netip.AddrPort, right bool) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if errors.Is(err, unix.EPERM) { // a raw socket needs CAP_NET_RAW
		netns.RequireRoot(t)
	}
	check.OK(t, err)
	defer unix.Close(fd)
	src := [4]byte{127, 86, 0, 3}
	check.OK(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: src}))
	p := make([]byte, 8, 8+8+len(in1))
	p = append(p, vx(vni, in1)...)
	binary.BigEndian.PutUint16(p, 50000)
	binary.BigEndian.PutUint16(p[2:], dst.Port())
	binary.BigEndian.PutUint16(p[4:], uint16(len(p)))
	a := dst.Addr().As4()
	sum := uint32(17 + len(p))
	for _, b := range [][]byte{src[:], a[:], p} {
		for i := 0; i < len(b); i += 2 {
			sum += uint32(b[i]) << 8
			if i+1 < len(b) {
				sum += uint32(b[i+1])
			}
		}
	}
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	c := ^uint16(sum)
	if !right {
		c ^= 0x0101
	}
	binary.BigEndian.PutUint16(p[6:], c)
	check.OK(t, unix.Sendto(fd, p, 0, &unix.SockaddrInet4{Addr: a}))
}
