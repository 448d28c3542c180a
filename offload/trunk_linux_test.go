package offload

import (
	"crypto/md5"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
	"github.com/vxswitch/vxswitch/port"
)

// inVLAN has a host's device send with a tag of priority 5, which is taken from what it receives. Not every kernel that runs tests has
// VLAN devices, but all have what those are made of.
func inVLAN(t *testing.T, h *netns.Host, dev string, id int32) (leave func()) {
	t.Helper()
	var all []io.Closer
	h.Do(func() {
		ifi := check.Must(net.InterfaceByName(dev))(t)
		for at, call := range map[ebpf.AttachType]asm.Instructions{
			ebpf.AttachTCXEgress:  {asm.Mov.Imm(asm.R2, 0x0081), asm.Mov.Imm(asm.R3, 5<<13|id), asm.FnSkbVlanPush.Call()},
			ebpf.AttachTCXIngress: {asm.FnSkbVlanPop.Call()},
		} {
			p := check.Must(ebpf.NewProgram(&ebpf.ProgramSpec{
				Type: ebpf.SchedCLS, AttachType: at, License: "Apache-2.0", Instructions: append(call, asm.Mov.Imm(asm.R0, -1), asm.Return()),
			}))(t)
			defer p.Close()
			all = append(all, check.Must(link.AttachTCX(link.TCXOptions{Interface: ifi.Index, Program: p, Attach: at, Anchor: link.Head()}))(t))
		}
	})
	leave = sync.OnceFunc(func() {
		for _, c := range all {
			check.OK(t, c.Close())
		}
	})
	t.Cleanup(leave) // or the collector would close what is not used any more
	return leave
}

// TestTrunk: a guest at a port that also has VLANs, of which one leads through a tunnel to a kernel's vxlan device and one to a guest
// at another port, in another VLAN. Both are carried, as is what has no tag, and counted as if they were not.
func TestTrunk(t *testing.T) {
	for _, kind := range []string{"TAP of the host", "veth"} {
		t.Run(kind, func(t *testing.T) {
			n := netns.New(t)
			a, b, g, g3 := n.Host("a"), n.Host("b"), n.Host("g"), n.Host("g3")
			n.Link(a, "192.0.2.1/24", b, "192.0.2.2/24")
			if kind != "veth" {
				g = a
			}
			s := newSiteOf(t, a, g, 1, 2)
			far, near := check.Must(s.sw.VSI(300, nil))(t), check.Must(s.sw.VSI(400, nil))(t)
			check.Must(far.Attach(s.v, 300))(t)
			check.Must(far.Attach(s.tap, 5))(t)
			check.OK(t, s.v.SetFlood(300, s.v.Flood(vni)...))
			third := netns.Open(t, a, func() (*port.Device, error) {
				return port.OpenVeth("tap3", &port.DeviceConfig{MTU: 1450, Namespace: g3.NS})
			})
			check.Must(near.Attach(s.tap, 6))(t)
			check.Must(near.Attach(third, 9))(t)
			for id, to := range map[int]string{vni: guest(2), 300: "192.168.8.2"} {
				b.VXLAN("vx"+strings.TrimSuffix(to, ".2")[8:], netns.VXLAN{ID: id, Local: "192.0.2.2", Remote: "192.0.2.1", Addr: to + "/24", Keep: true, Args: []string{"noudpcsum"}})
			}
			g.Addr("tap0", "192.168.8.1/24")
			g.Addr("tap0", "192.168.9.1/24")
			g3.Addr("tap3", "192.168.9.3/24")
			inVLAN(t, g3, "tap3", 9)
			for _, x := range []struct {
				what string
				id   int32
				peer *netns.Host
				to   string
			}{{"no tag", 0, b, guest(2)}, {"VLAN to tunnel", 5, b, "192.168.8.2"}, {"VLAN to VLAN", 6, g3, "192.168.9.3"}} {
				leave := func() {}
				if x.id != 0 {
					leave = inVLAN(t, g, "tap0", x.id)
				}
				s.h.Until(x.what+": both directions are carried", func() bool {
					was := s.stats().Carried.Frames
					g.Ping(x.to, 10)
					return s.stats().Carried.Frames >= was+20
				})
				for _, args := range [][]string{{"-n", "100M"}, {"-n", "100M", "-R"}, {"-u", "-b", "100M", "-l", "1000", "-t", "1"}} {
					before, rx := s.stats().Carried, s.sw.Stats()
					r := g.IPerf(x.peer, x.to, args...)
					t.Logf("%s, %v: %v", x.what, args, r)
					carried, in := s.stats().Carried, uint64(0)
					for i, p := range s.sw.Stats().Ports {
						in += p.Rx.Bytes - rx.Ports[i].Rx.Bytes
					}
					if want := uint64(r.Bytes) * 9 / 10; carried.Bytes-before.Bytes < want || in < want {
						t.Errorf("%s, %v: %d bytes carried, %d counted, of %+v: %+v", x.what, args, carried.Bytes-before.Bytes, in, r, s.stats())
					}
				}
				g.Run("ethtool", strings.Fields("-K tap0 txvlan off tso off gso off")...) // the tag in the frame, before a veth takes it out
				was := s.stats().Carried.Bytes
				r := g.IPerf(x.peer, x.to, "-n", "20M")
				if n := s.stats().Carried.Bytes - was; n < uint64(r.Bytes)*9/10 {
					t.Errorf("%s, without superframes: %d bytes carried of %+v", x.what, n, r)
				}
				g.Run("ethtool", strings.Fields("-K tap0 txvlan on tso on gso on")...)
				leave()
			}
			for _, h := range []*netns.Host{a, b, g, g3} {
				if n := h.Nstat()["TcpInCsumErrors"] + h.Nstat()["UdpInCsumErrors"]; n != 0 {
					t.Errorf("%s: %d wrong checksums", h.Name, n)
				}
			}
			leave := inVLAN(t, g, "tap0", 5)
			for _, h := range []*netns.Host{a, b} {
				h.Run("ethtool", strings.Fields("-K eth0 tx off tso off gso off gro off")...)
			}
			was := s.stats().Carried.Frames
			r := g.IPerf(b, "192.168.8.2", "-n", "50M", "-R") // segments that come alone, and are joined for a veth
			if n := s.stats().Carried.Frames - was; n < uint64(r.Bytes)/1450 {
				t.Errorf("underlay without offloads: %d frames carried of %+v", n, r)
			}
			check.OK(t, s.o.Close())
			g.Ping("192.168.8.2", 5)
			leave()
			g.Ping(guest(2), 5)
		})
	}
}

// TestGuestVLAN: a guest with a VLAN device of its own kernel's, at an interface that is a trunk: both directions are carried, to a
// kernel's vxlan device and to the host's TAP, which has no tag.
func TestGuestVLAN(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a guest")
	}
	a, b := two(t)
	g := qemu.Boot(t, a, qemu.Config{Link: "vm0", Modules: []string{"8021q"}})
	s := newSite(t, a, 1, 2)
	vm := netns.Open(t, a, func() (*port.Device, error) { return port.OpenInterface("vm0", &port.DeviceConfig{MTU: 1450}) })
	check.Must(s.vsi.Attach(vm, 5))(t)
	b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: "192.0.2.2", Remote: "192.0.2.1", Addr: guest(2) + "/24", Keep: true, Args: []string{"noudpcsum"}})
	g.Run("ip link set eth0 mtu 1450\nip link add link eth0 name five type vlan id 5 egress-qos-map 0:6\nip addr add " + guest(9) + "/24 dev five\nip link set five up")
	for _, to := range []string{guest(2), guest(1)} {
		ping := func(n int) bool {
			_, status := g.Try(fmt.Sprintf("ping -c %d -i 0.05 -W 2 %s", n, to))
			return status == 0
		}
		s.h.Until(to+" answers", func() bool { return ping(1) })
		s.h.Until("both directions are carried", func() bool {
			was := s.stats().Carried.Frames
			return ping(10) && s.stats().Carried.Frames >= was+20
		})
	}
	l := netns.Open(t, b, func() (net.Listener, error) { return net.Listen("tcp", guest(2)+":7000") })
	got := make(chan string)
	go func() {
		h := md5.New()
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(h, c)
			c.Close()
		}
		got <- fmt.Sprintf("%x", h.Sum(nil))
	}()
	was := s.stats().Carried.Bytes
	g.Run("seq 1 200000 >/tmp/sent")
	g.Run("nc " + guest(2) + " 7000 </tmp/sent")
	if sum := <-got; !strings.HasPrefix(g.Run("md5sum </tmp/sent"), sum) {
		t.Errorf("something else has arrived")
	}
	if n := s.stats().Carried.Bytes - was; n < 1_200_000 { // of 1,288,895
		t.Errorf("%d bytes carried: %+v", n, s.stats())
	}
}
