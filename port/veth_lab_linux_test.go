package port

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// openVeth makes a pair from inside the host and closes it with the test.
func openVeth(t *testing.T, h *netns.Host, name string, cfg *DeviceConfig) *Device {
	t.Helper()
	return netns.Open(t, h, func() (*Device, error) { return OpenVeth(name, cfg) })
}

// openInterface opens an interface of the host and closes it with the test.
func openInterface(t *testing.T, h *netns.Host, name string, cfg *DeviceConfig) *Device {
	t.Helper()
	return netns.Open(t, h, func() (*Device, error) { return OpenInterface(name, cfg) })
}

// A glued network is two hosts that a switch in a third joins.
type glued struct {
	a, b, m *netns.Host
	pa, pb  *counted
	da, db  *Device
}

// gluedBy joins hosts whose device e0 is an end of a veth pair.
var gluedBy = map[string]func(t *testing.T, m, h *netns.Host, k int, cfg *DeviceConfig) *Device{
	"veth": func(t *testing.T, m, h *netns.Host, k int, cfg *DeviceConfig) *Device {
		c := *cfg
		c.Namespace = h.NS
		return openVeth(t, m, "e0", &c)
	},
	"interface": func(t *testing.T, m, h *netns.Host, k int, cfg *DeviceConfig) *Device {
		name := fmt.Sprintf("h%d", k)
		m.IP("link", "add", name, "type", "veth", "peer", "name", "e0", "netns", h.NS)
		m.Up(name)
		h.Up("e0")
		return openInterface(t, m, name, cfg)
	},
}

func newGlued(t *testing.T, kind string, a, b DeviceConfig) *glued {
	t.Helper()
	n := netns.New(t)
	x := &glued{a: n.Host("a"), b: n.Host("b"), m: n.Host("m")}
	x.m.Quiet()
	x.da, x.db = gluedBy[kind](t, x.m, x.a, 0, &a), gluedBy[kind](t, x.m, x.b, 1, &b)
	x.pa, x.pb = &counted{Port: x.da}, &counted{Port: x.db}
	x.a.Addr("e0", "10.9.0.1/24,fd09::1/64")
	x.b.Addr("e0", "10.9.0.2/24,fd09::2/64")
	switched(t, []uint32{0, 0}, x.pa, x.pb)
	x.a.Ready()
	x.b.Ready()
	return x
}

// Superframes go through whole, both ways, where both ends take them, and arrive right in any case.
func TestGluedTCP(t *testing.T) {
	const size = 8 << 20
	for kind := range gluedBy {
		for name, c := range map[string][2]DeviceConfig{
			"offload": {}, "queues": {{Queues: 2}, {Queues: 3}}, "off": {{NoOffload: true}, {NoOffload: true}}, "one off": {{}, {NoOffload: true}},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				x := newGlued(t, kind, c[0], c[1])
				for _, addr := range []string{"10.9.0.2", "fd09::2"} {
					x.a.Ping(addr, 2)
					x.a.Transfer(x.b, net.JoinHostPort(addr, "7000"), size)
				}
				noChecksumErrors(t, x.a, x.b)
				for i, p := range []*counted{x.pa, x.pb} {
					off := c[i].NoOffload
					t.Logf("%d frames, %d superframes, %d unfinished", p.frames.Load(), p.super.Load(), p.unfinished.Load())
					if (p.unfinished.Load() == 0) != off || (p.tcp4.Load() == 0 || p.tcp6.Load() == 0) != off || p.refused.Load() > 0 {
						t.Errorf("%d superframes of IPv4, %d of IPv6, %d unfinished, %d refused", p.tcp4.Load(), p.tcp6.Load(), p.unfinished.Load(), p.refused.Load())
					}
				}
				if !c[0].NoOffload && !c[1].NoOffload {
					const segments = 4 * size / 1460
					if n := x.b.Counter("e0", "rx_packets"); n > segments/4 {
						t.Errorf("%d packets came out for %d segments: superframes were cut", n, segments)
					}
				}
			})
		}
	}
}

func TestGluedUDP(t *testing.T) {
	for kind := range gluedBy {
		for _, ip := range []string{"10.9.0.2", "fd09::2"} {
			t.Run(kind+ip, func(t *testing.T) {
				x := newGlued(t, kind, DeviceConfig{}, DeviceConfig{})
				datagrams(t, x.a, x.b, ip)
				if x.pa.udp.Load() == 0 {
					t.Error("no UDP superframes")
				}
				noChecksumErrors(t, x.a, x.b)
			})
		}
	}
}

// Flows go through several queues, each through one, and in order.
func TestGluedQueues(t *testing.T) {
	n := netns.New(t)
	a, m := n.Host("a"), n.Host("m")
	a.Quiet()
	const queues, flows, rounds = 4, 32, 100
	d := openVeth(t, m, "e0", &DeviceConfig{Queues: queues, Namespace: a.NS})
	type got struct{ queue, flow, n int }
	all := make(chan got, flows*rounds)
	for k, r := range d.Readers() {
		go func() {
			for b := frame.NewBatch(nil); r.Read(b) == nil; {
				for i := range b.Frames {
					if p := b.Frames[i].Bytes(); len(p) == 46 {
						all <- got{k, int(binary.BigEndian.Uint16(p[34:])), int(binary.BigEndian.Uint32(p[42:]))}
					}
				}
			}
		}()
	}
	for i := range rounds {
		var frames [][]byte
		for flow := range flows {
			frames = append(frames, udp4(frame.MAC{2, 0, 0, 0, 0, 1}, uint16(1000+flow), 7000, binary.BigEndian.AppendUint32(nil, uint32(i))))
		}
		a.Inject("e0", frames...)
	}
	used, queue, next := map[int]bool{}, map[int]int{}, map[int]int{}
	for range flows * rounds {
		select {
		case x := <-all:
			if q, ok := queue[x.flow]; ok && q != x.queue {
				t.Fatalf("flow %d came in through queues %d and %d", x.flow, q, x.queue)
			}
			if x.n != next[x.flow] {
				t.Fatalf("flow %d: frame %d, want %d", x.flow, x.n, next[x.flow])
			}
			queue[x.flow], used[x.queue] = x.queue, true
			next[x.flow]++
		case <-time.After(20 * time.Second):
			t.Fatal("frames are missing")
		}
	}
	if len(used) != queues {
		t.Errorf("queues %v were used", used)
	}
}

// What is flooded to a guest that it is not for does not get into its stack, as from a wire: it is no frame to its
// MAC.
func TestGluedFramesToOthers(t *testing.T) {
	for kind := range gluedBy {
		t.Run(kind, func(t *testing.T) {
			n := netns.New(t)
			a, m := n.Host("a"), n.Host("m")
			a.Quiet()
			d := gluedBy[kind](t, m, a, 0, &DeviceConfig{})
			a.Addr("e0", "10.9.0.1/24")
			server := listen(t, a, "10.9.0.1:7000")
			mac, err := net.ParseMAC(a.MAC("e0"))
			must(t, err)
			w := d.Writer(0)
			for _, to := range []frame.MAC{{2, 0, 0, 0, 0, 0x77}, frame.MAC(mac), frame.Broadcast} {
				if err := w.Write(fake.Outs(udp4(to, 5000, 7000, []byte(to.String())))); err != nil {
					t.Fatal(err)
				}
			}
			server.SetReadDeadline(time.Now().Add(10 * time.Second))
			buf := make([]byte, 100)
			for _, want := range []string{mac.String(), frame.Broadcast.String()} {
				k, _, err := server.ReadFrom(buf)
				if err != nil || string(buf[:k]) != want {
					t.Errorf("got %q, %v; want that to %s", buf[:k], err, want)
				}
			}
		})
	}
}

// The host's own stack sees nothing, and says nothing to the guest.
func TestGluedHostIsSilent(t *testing.T) {
	n := netns.New(t)
	a, m := n.Host("a"), n.Host("m") // m has IPv6, and makes addresses if it may
	a.Quiet()
	d := openVeth(t, m, "e0", &DeviceConfig{Namespace: a.NS})
	m.Sysctl("net.ipv4.ip_forward", "1")
	p := NewPipe(nil)
	switched(t, []uint32{0, 0}, d, p)
	c := a.Capture("e0", "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a.Inject("e0", fake.Ethernet(60, 0))
	if _, err := p.Recv(ctx); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // for duplicate address detection, router solicitations
	for _, x := range c.Stop() {
		if !x.Out {
			t.Errorf("the guest received\n%s", netns.Dump([]netns.Packet{x}))
		}
	}
	if out := m.IP("-6", "addr"); strings.Contains(out, "vxh") || strings.Contains(out, "vxt") {
		t.Errorf("addresses:\n%s", out)
	}
	for name, k := range m.Nstat() {
		if strings.HasSuffix(name, "InReceives") && k > 0 {
			t.Errorf("%s: %d", name, k)
		}
	}
}
