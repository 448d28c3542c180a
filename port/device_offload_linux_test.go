package port

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// counted is a port that counts what is read from it.
type counted struct {
	vswitch.Port
	frames, super, unfinished atomic.Int64
	tcp4, tcp6, udp           atomic.Int64 // superframes of each kind
	refused                   atomic.Int64 // by the reader
}

type countedReader struct {
	frame.Reader
	c *counted
}

func (c *counted) Offloads() frame.Offloads { return c.Port.(vswitch.Offloader).Offloads() }

func (c *counted) Readers() (rs []frame.Reader) {
	for _, r := range c.Port.Readers() {
		rs = append(rs, countedReader{r, c})
	}
	return rs
}

func (r countedReader) Read(b *frame.Batch) error {
	err := r.Reader.Read(b)
	for i := range b.Frames {
		f := &b.Frames[i]
		r.c.frames.Add(1)
		if f.Drop != frame.NotDropped {
			r.c.refused.Add(1)
		}
		switch f.GSO.Type &^ frame.GSOECN {
		case frame.GSOTCP4:
			r.c.tcp4.Add(1)
		case frame.GSOTCP6:
			r.c.tcp6.Add(1)
		case frame.GSOUDP &^ frame.GSOECN:
			r.c.udp.Add(1)
		}
		if f.GSO.Type != 0 {
			r.c.super.Add(1)
		}
		if f.GSO.Flags != 0 {
			r.c.unfinished.Add(1)
		}
	}
	return err
}

// switched attaches ports to one VSI of a switch, each under its tag, and runs it until
// the test ends. Nothing may have been dropped by then but what nobody asked for.
func switched(t *testing.T, tags []uint32, ports ...vswitch.Port) *vswitch.Switch {
	t.Helper()
	sw := check.Must(vswitch.New(nil))(t)
	vsi := check.Must(sw.VSI(1, nil))(t)
	for i, p := range ports {
		check.Must(vsi.Attach(p, tags[i]))(t)
	}
	done := make(chan bool)
	go func() { defer close(done); sw.Run(context.Background()) }()
	t.Cleanup(func() { sw.Close(); <-done })
	return sw
}

// pair is two hosts that a switch joins, through a TAP each.
func pair(t *testing.T, a, b *DeviceConfig) (ha, hb *netns.Host, pa, pb *counted) {
	t.Helper()
	n := netns.New(t)
	ha, hb = n.Host("a"), n.Host("b")
	pa, pb = &counted{Port: openTAP(t, ha, "tap0", a)}, &counted{Port: openTAP(t, hb, "tap0", b)}
	ha.Addr("tap0", "10.9.0.1/24,fd09::1/64")
	hb.Addr("tap0", "10.9.0.2/24,fd09::2/64")
	switched(t, []uint32{0, 0}, pa, pb)
	return ha, hb, pa, pb
}

func TestDeviceTCP(t *testing.T) {
	const size = 8 << 20
	for _, c := range []struct{ a, b bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		for _, addr := range []string{"10.9.0.2:7000", "[fd09::2]:7000"} {
			t.Run(fmt.Sprintf("%v-%v-%s", c.a, c.b, addr), func(t *testing.T) {
				ha, hb, pa, pb := pair(t, &DeviceConfig{NoOffload: !c.a}, &DeviceConfig{NoOffload: !c.b, Queues: 2})
				ha.Transfer(hb, addr, size)
				noChecksumErrors(t, ha, hb)
				intoA, intoB := int64(ha.Counter("tap0", "rx_packets")), int64(hb.Counter("tap0", "rx_packets"))
				t.Logf("from a: %d frames, %d superframes; %d writes to b", pa.frames.Load(), pa.super.Load(), intoB)
				t.Logf("from b: %d frames, %d superframes; %d writes to a", pb.frames.Load(), pb.super.Load(), intoA)
				const segments = size / 1460
				for _, end := range []struct {
					from           *counted
					offload, other bool
					writes         int64
				}{{pa, c.a, c.b, intoB}, {pb, c.b, c.a, intoA}} {
					frames, super := end.from.frames.Load(), end.from.super.Load()
					kind := end.from.tcp4.Load()
					if strings.HasPrefix(addr, "[") {
						kind = end.from.tcp6.Load()
					}
					if kind != super {
						t.Errorf("%d superframes, %d of the right kind", super, kind)
					}
					switch {
					case end.offload && (super == 0 || frames > segments):
						t.Errorf("a device with offloads: %d frames, %d superframes", frames, super)
					case !end.offload && (end.from.unfinished.Load() != 0 || frames < segments):
						t.Errorf("a device without offloads: %d frames, %d superframes, %d unfinished", frames, super, end.from.unfinished.Load())
					}
					switch {
					case end.other && end.offload && end.writes > frames:
						t.Errorf("%d frames were written as %d", frames, end.writes)
					case end.other && !end.offload && end.writes >= frames:
						t.Errorf("%d frames were written as %d: nothing was joined", frames, end.writes)
					case !end.other && end.writes < segments:
						t.Errorf("%d writes to a device without offloads", end.writes)
					}
				}
			})
		}
	}
}

// A trunk: the superframe has a VLAN tag where the kernel sees it. From a packet port's socket the
// kernel takes the tag out of it, the port puts it back, and the metadata counts from behind it.
func TestTCPOverATrunk(t *testing.T) {
	for name, open := range map[string]func(m *netns.Host, noOffload bool) (ta, tb vswitch.Port){
		"TAP": func(m *netns.Host, noOffload bool) (ta, tb vswitch.Port) {
			cfg := &DeviceConfig{NoOffload: noOffload}
			ta, tb = openTAP(t, m, "ta", cfg), openTAP(t, m, "tb", cfg)
			m.Bridge("br0", "ta", "tb")
			return ta, tb
		},
		"packet": func(m *netns.Host, noOffload bool) (ta, tb vswitch.Port) {
			m.IP("link", "add", "ta", "type", "veth", "peer", "tb")
			m.Up("ta")
			m.Up("tb")
			cfg := &PacketConfig{NoOffload: noOffload}
			return openPacket(t, m, "ta", cfg), openPacket(t, m, "tb", cfg)
		},
		"veth": func(m *netns.Host, noOffload bool) (ta, tb vswitch.Port) {
			cfg := &DeviceConfig{NoOffload: noOffload}
			ta, tb = openVeth(t, m, "ta", cfg), openVeth(t, m, "tb", cfg)
			m.Bridge("br0", "ta", "tb")
			return ta, tb
		},
		"interface": func(m *netns.Host, noOffload bool) (ta, tb vswitch.Port) {
			m.IP("link", "add", "ta", "type", "veth", "peer", "tb")
			m.Up("ta")
			m.Up("tb")
			cfg := &DeviceConfig{NoOffload: noOffload}
			return openInterface(t, m, "ta", cfg), openInterface(t, m, "tb", cfg)
		},
	} {
		for _, offload := range []bool{true, false} {
			t.Run(fmt.Sprint(name, offload), func(t *testing.T) {
				n := netns.New(t)
				ha, hb, m := n.Host("a"), n.Host("b"), n.Host("m")
				m.Quiet()
				a, b := open(m, !offload)
				ta, tb := &counted{Port: a}, &counted{Port: b}
				pa, pb := openTAP(t, ha, "tap0", nil), openTAP(t, hb, "tap0", nil)
				ha.Addr("tap0", "10.9.0.1/24,fd09::1/64")
				hb.Addr("tap0", "10.9.0.2/24,fd09::2/64")
				switched(t, []uint32{0, 100}, pa, ta)
				switched(t, []uint32{0, 100}, pb, tb)
				c := m.Capture("tb", "")
				for _, addr := range []string{"10.9.0.2:7000", "[fd09::2]:7000"} {
					ha.Transfer(hb, addr, 1<<20)
				}
				noChecksumErrors(t, ha, hb)
				for _, x := range []*counted{ta, tb} {
					t.Logf("trunk: %d frames, %d superframes", x.frames.Load(), x.super.Load())
					if (x.tcp4.Load() > 0) != offload || (x.tcp6.Load() > 0) != offload {
						t.Errorf("superframes on the trunk: %d, %d", x.tcp4.Load(), x.tcp6.Load())
					}
				}
				ps := c.Stop()
				if rows := netns.Fields(t, ps, "tcp && vlan.id == 100", "vlan.id"); len(rows) == 0 || len(rows) != len(netns.Fields(t, ps, "tcp", "vlan.id")) {
					t.Errorf("%d packets on VLAN 100", len(rows))
				}
			})
		}
	}
}

// segment makes the kernel send what is written to a UDP socket as datagrams of a size.
func segment(t *testing.T, c net.Conn, size int) {
	t.Helper()
	raw, err := c.(*net.UDPConn).SyscallConn()
	must(t, err)
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) })
	must(t, err)
}

// datagrams sends datagrams of all sizes from a to an address of b: whole, in fragments, and as UDP
// superframes.
func datagrams(t *testing.T, a, b *netns.Host, ip string) {
	t.Helper()
	send := a.Datagrams(b, net.JoinHostPort(ip, "7000"))
	for _, n := range []int{0, 1, 2, 3, 17, 100, 511, 512, 1000, 1451, 1452, 1453, 1471, 1472, 1473, 3000, 9000, 60000, 65487, 65507} {
		if n <= 65487 || net.ParseIP(ip).To4() != nil {
			send(n, 0)
		}
	}
	// Superframes: the kernel cuts what is left of them.
	for _, seg := range []int{1, 100, 999, 1400} {
		send(min(40*seg, 50000)+seg/2, seg)
	}
}

func TestDeviceUDP(t *testing.T) {
	for _, c := range []struct{ a, b bool }{{true, true}, {true, false}, {false, true}} {
		for _, ip := range []string{"10.9.0.2", "fd09::2"} {
			t.Run(fmt.Sprintf("%v-%v-%s", c.a, c.b, ip), func(t *testing.T) {
				ha, hb, pa, pb := pair(t, &DeviceConfig{NoOffload: !c.a}, &DeviceConfig{NoOffload: !c.b})
				for p, want := range map[*counted]bool{pa: c.a, pb: c.b} { // Linux 6.2 and later take them
					if got := p.Offloads()&frame.OffloadUSO != 0; got != want {
						t.Errorf("takes UDP superframes: %v, want %v", got, want)
					}
				}
				datagrams(t, ha, hb, ip)
				if got := pa.udp.Load(); (got == 0) != !c.a {
					t.Errorf("%d UDP superframes", got)
				}
				if !c.a && c.b && int64(hb.Counter("tap0", "rx_packets")) >= pa.frames.Load() {
					t.Error("no datagrams were joined")
				}
				noChecksumErrors(t, ha, hb)
			})
		}
	}
}

// A queue that somebody else opened with offloads of its own, and a longer header.
func TestDeviceFromAFileWithOffloads(t *testing.T) {
	for _, c := range []struct {
		header, flags int
		noOffload     bool
	}{{10, unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6, false}, {12, unix.TUN_F_CSUM, false}, {12, 0, false}, {20, unix.TUN_F_CSUM | unix.TUN_F_TSO4, true}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			n := netns.New(t)
			ha, hb := n.Host("a"), n.Host("b")
			fd := attached(t, ha, "tap0", plainTAP|unix.IFF_VNET_HDR)
			must(t, unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, c.header))
			must(t, unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, c.flags))
			d, err := fromFD(fd, &DeviceConfig{NoOffload: c.noOffload})
			must(t, err)
			a, b := &counted{Port: d}, openTAP(t, hb, "tap0", nil)
			ha.Addr("tap0", "10.9.0.1/24")
			hb.Addr("tap0", "10.9.0.2/24")
			switched(t, []uint32{0, 0}, a, b)
			ha.Transfer(hb, "10.9.0.2:7000", 2<<20)
			noChecksumErrors(t, ha, hb)
			if want := c.flags&unix.TUN_F_TSO4 != 0 && !c.noOffload; (a.super.Load() > 0) != want {
				t.Errorf("%d superframes", a.super.Load())
			}
			if want := c.flags != 0 && !c.noOffload; (a.unfinished.Load() > 0) != want {
				t.Errorf("%d unfinished checksums", a.unfinished.Load())
			}

			// Nobody knows whether this queue takes UDP superframes: they are cut.
			server := listen(t, ha, "10.9.0.1:7000")
			server.SetReadDeadline(time.Now().Add(10 * time.Second))
			client := netns.Open(t, hb, func() (net.Conn, error) { return net.Dial("udp", "10.9.0.1:7000") })
			segment(t, client, 100)
			before := ha.Counter("tap0", "rx_packets")
			check.Must(client.Write(make([]byte, 1950)))(t)
			for range 20 {
				if _, _, err := server.ReadFrom(make([]byte, 2000)); err != nil {
					t.Fatal(err)
				}
			}
			if n := ha.Counter("tap0", "rx_packets") - before; n < 20 {
				t.Errorf("20 datagrams came in as %d packets", n)
			}
		})
	}
}

// TUN devices carry superframes too.
func TestTUNWithOffloads(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	x, y := openTUN(t, a, "tun0", nil), openTUN(t, b, "tun0", nil)
	var super atomic.Int64
	done := cable(t, x, y, func(f *frame.Frame) bool {
		if f.GSO.Type != 0 {
			super.Add(1)
		}
		return true
	})
	a.Addr("tun0", "10.9.0.1/24,fd09::1/64")
	b.Addr("tun0", "10.9.0.2/24,fd09::2/64")
	a.Transfer(b, "10.9.0.2:7000", 4<<20)
	b.Transfer(a, "[fd09::1]:7000", 4<<20)
	noChecksumErrors(t, a, b)
	if super.Load() == 0 {
		t.Error("no superframes")
	}
	x.Close()
	y.Close()
	<-done
}

// noChecksumErrors: no host has received a packet with a wrong checksum.
func noChecksumErrors(t *testing.T, hosts ...*netns.Host) {
	t.Helper()
	for _, h := range hosts {
		if m := h.ChecksumErrors(); len(m) > 0 {
			t.Errorf("host %s: %v", h.Name, m)
		}
	}
}
