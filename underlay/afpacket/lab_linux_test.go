package afpacket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/underlay"
)

// What leaves, as tshark reads it on the far side: every checksum is right or, where there is
// to be none, 0; of runs that the kernel has cut too.
func TestOnTheWire(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		ip, sum := "ip", []string{"ip.checksum.status", "ip.dsfield", "ip.ttl", "ip.flags.df", "ip.len"}
		if v.IP6 {
			ip, sum = "ipv6", []string{"ipv6.tclass", "ipv6.hlim", "ipv6.plen", "ipv6.flow"}
		}
		for _, mode := range []underlay.Checksum{underlay.ChecksumAuto, underlay.ChecksumOn, underlay.ChecksumOff} {
			for _, off := range []bool{false, true} {
				p := v.packet(&Config{Checksum: mode, NoOffload: off, DefaultTTL: 50})
				b := v.udp(v.B, 2, &underlay.UDPConfig{ZeroChecksum6RX: true})
				v.A.Run("ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "on") // the kernel is the card
				warm(t, v, p, b)
				c := v.B.Capture("eth0", "udp dst port 4789")
				run, want := runOf(2503, 1000, 3, 7, v.End(2))
				odd := frame.Datagram{Parts: [][]byte{[]byte("abc"), []byte("d"), nil, []byte("efg")}, To: []frame.Endpoint{v.End(2), v.End(2)}, Flow: 7, TOS: 0xb9, TTL: 9, DF: true}
				send(t, p, odd, run)
				receive(t, b, 2+len(want))
				rows := netns.Fields(t, c.Stop(), "", append([]string{ip + ".src", "udp.srcport", "udp.length", "udp.checksum", "udp.checksum.status"}, sum...)...)
				if len(rows) != 2+len(want) {
					t.Fatalf("mode %d: %d packets: %q", mode, len(rows), rows)
				}
				for i, r := range rows {
					whole := i >= 2 && !off && mode != underlay.ChecksumOff
					summed := mode == underlay.ChecksumOn || mode == underlay.ChecksumAuto && v.IP6 || whole
					if zero := r[3] == "0x0000"; r[0] != v.At(1, 0).Addr().String() || r[1] != "49153" || zero == summed || summed && r[4] != "1" {
						t.Errorf("mode %d, NoOffload %v, packet %d: %q", mode, off, i, r)
					}
					length := []int{7, 7, 1000, 1000, 503}[i] + 8
					tos, ttl := "0xb9", "9"
					if i >= 2 {
						tos, ttl = "0x00", "50"
					}
					fields := []string{"1", tos, ttl, "1", fmt.Sprint(length + 20)}
					if v.IP6 {
						fields = []string{"0x000000" + tos[2:], ttl, fmt.Sprint(length), "0x080007"}
					}
					if r[2] != fmt.Sprint(length) || !slices.Equal(r[5:], fields) {
						t.Errorf("mode %d, NoOffload %v, packet %d: %q, want %q", mode, off, i, r[5:], fields)
					}
				}
				p.Close()
				b.Close()
			}
		}
	})
}

// All of the range of source ports is used, and no more: the same port for a flow as with UDP sockets on all of them.
func TestPorts(t *testing.T) {
	v := newVeth(t, false)
	p, b := v.packet(&Config{SrcPorts: underlay.PortRange{Lo: 1000, Hi: 1099}}), v.udp(v.B, 2, nil)
	warm(t, v, p, b)
	seen := map[uint16]bool{}
	for i := range 500 {
		flow := i << 16 / 500
		send(t, p, to("x", uint16(flow), v.End(2)))
		port := receive(t, b, 1)[0].Outer.Src.Port
		if seen[port] = true; port != uint16(1000+flow*100>>16) {
			t.Fatalf("flow %d from port %d", flow, port)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d ports", len(seen))
	}
	all, err := p.Sockets(underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 1, Hi: 65535}})
	if err != nil || all != 1 {
		t.Fatal(all, err)
	}
	d := to("x", 65535, v.End(2))
	d.Set = all
	send(t, p, d)
	if port := receive(t, b, 1)[0].Outer.Src.Port; port != 65535 {
		t.Errorf("port %d", port)
	}
}

// Flows are spread over two queues, each stays in its own, and nothing comes twice.
func TestQueues(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		p := v.packet(&Config{Queues: 2})
		b := v.udp(v.B, 2, nil)
		e := v.End(1)
		send(t, b, to("hello", 0, e))
		fake.Until(t, "the next hop answers", func() bool { return b.Stats().TxDatagrams == 1 })
		const rounds = 4
		var ds []frame.Datagram
		for range rounds {
			for flow := range 16 {
				ds = append(ds, to(fmt.Sprint(flow), uint16(flow<<12), e))
			}
		}
		send(t, b, ds...)
		var mu sync.Mutex
		var wg sync.WaitGroup
		queue, n := map[string]int{}, [2]int{}
		for i, r := range p.Readers() {
			wg.Go(func() {
				for batch := frame.NewBatch(nil); r.Read(batch) == nil; {
					mu.Lock()
					for k := range batch.Frames {
						text := string(batch.Frames[k].Bytes())
						if q, ok := queue[text]; ok && q != i {
							t.Errorf("flow %s in both queues", text)
						}
						if text != "hello" {
							queue[text] = i
							n[i]++
						}
					}
					mu.Unlock()
				}
			})
		}
		fake.Until(t, "all datagrams", func() bool { mu.Lock(); defer mu.Unlock(); return n[0]+n[1] >= rounds*16 })
		time.Sleep(20 * time.Millisecond)
		p.Pause()
		wg.Wait()
		if n[0]+n[1] != rounds*16 || n[0] == 0 || n[1] == 0 {
			t.Errorf("%v datagrams in the queues", n)
		}
	})
}

// Link-local addresses need no prefix, and mean something only on the interface.
func TestLinkLocal(t *testing.T) {
	v := newVeth(t, true)
	v.B.Addr("eth0", "fe80::b/64")
	var p *Underlay
	var err error
	v.A.Do(func() {
		p, err = Listen(netip.MustParseAddrPort("[fe80::a]:4789"), &Config{Device: "eth0", Prefix: netip.MustParsePrefix("fd00:1::/64")})
	})
	must(t, err)
	defer p.Close()
	us, them := endpoint(t, p.LocalAddr()), frame.Endpoint{}
	u := listenUDP(t, v.B, netip.MustParseAddrPort("[fe80::b%eth0]:4789"), nil)
	v.B.Do(func() { them = endpoint(t, u.LocalAddr()) })
	if us.Scope != uint32(p.dev.Index) {
		t.Errorf("local %v", us)
	}
	inA, inB := them, us
	inA.Scope, inB.Scope = us.Scope, them.Scope
	stray := inA
	stray.Scope++
	ds := []frame.Datagram{to("out", 1, inA, stray)}
	send(t, p, ds...)
	if ds[0].Lost != 1 || ds[0].Drop != frame.Unreachable {
		t.Errorf("on another interface: lost %d, %v", ds[0].Lost, ds[0].Drop)
	}
	if r := receive(t, u, 1)[0]; r.Payload != "out" || r.Outer.Src.Host() != inB.Host() {
		t.Errorf("%+v", r)
	}
	send(t, u, to("back", 1, inB))
	if r := receive(t, p, 1)[0]; r.Payload != "back" || r.Outer.Src.Host() != inA.Host() || r.Outer.Dst != us {
		t.Errorf("%+v", r)
	}
}

// Off the link there is the gateway, or nobody.
func TestGateway(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		n := netns.New(t)
		r, c := n.Router("r"), n.Host("c")
		cidr := map[bool][4]string{
			false: {"10.9.0.100/24", "10.9.0.254/24", "10.8.0.1/24", "10.8.0.2/24"},
			true:  {"fd09::100/64", "fd09::fe/64", "fd08::1/64", "fd08::2/64"},
		}[v.IP6]
		n.Link(v.A, cidr[0][:0], r, cidr[1])
		n.Link(r, cidr[2], c, cidr[3])
		r.Ready()
		c.Ready()
		gw, far := netip.MustParsePrefix(cidr[1]).Addr(), netip.MustParsePrefix(cidr[3]).Addr()
		c.Route("default", "via", netip.MustParsePrefix(cidr[2]).Addr().String())
		var p *Underlay
		var err error
		v.A.Do(func() {
			p, err = Listen(v.At(1, 4789), &Config{Device: "eth1", Prefix: netip.PrefixFrom(gw, 24+40*ip6Bit(v.IP6)), Gateway: gw})
		})
		must(t, err)
		defer p.Close()
		u := listenUDP(t, c, netip.AddrPortFrom(far, 4789), nil)
		e := endpoint(t, u.LocalAddr())
		send(t, p, to("through", 1, e))
		if g := receive(t, u, 1)[0]; g.Payload != "through" || g.Outer.TTL != 63 {
			t.Errorf("%+v", g)
		}
		send(t, u, to("back", 1, v.End(1)))
		if g := receive(t, p, 1)[0]; g.Payload != "back" || g.Outer.TTL != 63 {
			t.Errorf("%+v", g)
		}

		// The link behind the router takes less: it says so, and the func is told.
		r.MTU("eth1", 1300)
		type word struct {
			to     frame.Endpoint
			mtu    int
			quoted string
		}
		said := make(chan word, 10)
		p.PathMTU(func(to frame.Endpoint, mtu int, quoted []byte) { said <- word{to, mtu, string(quoted)} })
		send(t, p, to(strings.Repeat("long", 340), 1, e))
		select {
		case w := <-said:
			if w.to != e || w.mtu != 1300 || !strings.HasPrefix(w.quoted, "longlong") || len(w.quoted) != quoteMax {
				t.Errorf("%+v", w)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("nothing was said: %+v", p.Stats())
		}
		// Nobody listens there any more.
		u.Close()
		send(t, p, to("x", 1, e))
		v.A.Until("refused", func() bool { return p.Stats().Errors.Refused == 1 })
		// No such network.
		nowhere := endpoint(t, netip.AddrPortFrom(map[bool]netip.Addr{false: netip.MustParseAddr("203.0.113.9"), true: netip.MustParseAddr("2001:db8::9")}[v.IP6], 4789))
		send(t, p, to("x", 1, nowhere))
		v.A.Until("unreachable", func() bool { return p.Stats().Errors.Unreachable == 1 })
		if st := p.Stats(); st.Errors.TooBig != 1 || st.Lost() != 0 {
			t.Errorf("%+v", st)
		}

		alone := v.packet(&Config{Prefix: netip.PrefixFrom(v.At(0, 0).Addr(), 24+40*ip6Bit(v.IP6))})
		ds := []frame.Datagram{to("x", 1, nowhere), to("x", 1, endpoint(t, netip.MustParseAddrPort(map[bool]string{false: "255.255.255.255:9", true: "[ff02::1%99]:9"}[v.IP6]))), to("x", 1, v.End(1))}
		send(t, alone, ds...)
		for i := range ds {
			if ds[i].Lost != 1 || ds[i].Drop != frame.Unreachable {
				t.Errorf("datagram %d: %d, %v", i, ds[i].Lost, ds[i].Drop)
			}
		}
	})
}

func ip6Bit(ip6 bool) int {
	if ip6 {
		return 1
	}
	return 0
}

// Errors that are not about a datagram of ours, or cannot be, are not believed.
func TestErrorsThatLie(t *testing.T) {
	v := newVeth(t, false)
	p := v.packet(nil)
	told := atomic.Int32{}
	p.PathMTU(func(frame.Endpoint, int, []byte) { told.Add(1) })
	make1 := func(change func(icmp, quoted []byte)) []byte {
		q := frameOf(false, make([]byte, 1400))[14:]
		copy(q[12:], []byte{10, 9, 0, 1, 10, 9, 0, 2})
		q = sumIP(append(make([]byte, 14), q...))[14 : 14+64]
		c := append([]byte{3, 4, 0, 0, 0, 0, 0x04, 0xb0}, q...) // 1200
		change(c, c[8:])
		c[2], c[3] = 0, 0
		binary.BigEndian.PutUint16(c[2:], ^plainSum(c, 0))
		b := frameOf(false, c)
		b[14+9] = 1
		b = slices.Concat(b[:34], c)
		binary.BigEndian.PutUint16(b[16:], uint16(20+len(c)))
		copy(b, p.mac[:])
		return sumIP(b)
	}
	for name, change := range map[string]func(icmp, quoted []byte){
		"another source":       func(_, q []byte) { q[15] = 9 },
		"another source port":  func(_, q []byte) { q[20] = 1 },
		"another protocol":     func(_, q []byte) { q[9] = 6 },
		"a later fragment":     func(_, q []byte) { q[7] = 1 },
		"it would have fitted": func(c, _ []byte) { c[6] = 0x10 },
		"an echo":              func(c, _ []byte) { c[0], c[1] = 8, 0 },
		"cut":                  func(c, q []byte) { q[0] = 0x4f },
	} {
		v.B.Inject("eth0", make1(change))
		time.Sleep(20 * time.Millisecond)
		if st := p.Stats(); st.Errors != (underlay.Stats{}).Errors || told.Load() != 0 {
			t.Fatalf("%s: %+v, told %d", name, st.Errors, told.Load())
		}
	}
	wrong := make1(func(_, _ []byte) {})
	wrong[36] ^= 1
	v.B.Inject("eth0", wrong, make1(func(_, _ []byte) {}))
	v.A.Until("the right one is believed", func() bool { return told.Load() == 1 && p.Stats().Errors.TooBig == 1 })
}

// The interface changes its MTU, goes down, comes back, and is deleted.
func TestInterface(t *testing.T) {
	v := newVeth(t, false)
	p, b := v.packet(nil), v.udp(v.B, 2, nil)
	warm(t, v, p, b)
	v.A.MTU("eth0", 1280)
	v.A.Until("the MTU is seen", func() bool { return p.MTU() == 1280 })
	v.A.MTU("eth0", 1500)
	v.A.Until("the MTU is seen", func() bool { return p.MTU() == 1500 })

	v.A.IP("link", "set", "eth0", "down")
	ds := []frame.Datagram{to("down", 1, v.End(2))}
	send(t, p, ds...)
	if ds[0].Lost != 1 || ds[0].Drop != frame.Unreachable {
		t.Errorf("down: %d, %v", ds[0].Lost, ds[0].Drop)
	}
	v.A.Up("eth0")
	v.A.Until("it is up", func() bool {
		ds := []frame.Datagram{to("up", 1, v.End(2))}
		send(t, p, ds...)
		return ds[0].Lost == 0
	})
	if g := read(t, b)[0]; g.Payload != "up" {
		t.Errorf("%+v", g)
	}
	send(t, b, to("and back", 1, v.End(1)))
	if g := receive(t, p, 1)[0]; g.Payload != "and back" {
		t.Errorf("%+v", g)
	}

	done := make(chan error, 1)
	go func() { done <- p.Readers()[0].Read(frame.NewBatch(nil)) }()
	v.A.IP("link", "del", "eth0")
	if err := <-done; !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), `"eth0"`) {
		t.Error(err)
	}
	if err := p.Sender(0).Send(ds); !errors.Is(err, unix.ENODEV) || ds[0].Drop != frame.PortDown {
		t.Error(err, ds[0].Drop)
	}
	if err := p.Readers()[0].Read(frame.NewBatch(nil)); !errors.Is(err, unix.ENODEV) {
		t.Error(err)
	}
}

// A kernel that refuses runs gets single datagrams, and the full buffer costs what is next.
func TestRefusedRuns(t *testing.T) {
	v := newVeth(t, false)
	p, b := v.packet(nil), v.udp(v.B, 2, nil)
	warm(t, v, p, b)
	real := p.sendmmsg
	p.sendmmsg = func(fd uintptr, msgs []sys.Mmsghdr, flags int) (int, unix.Errno) {
		if n := len(msgs); n > 0 {
			head := (*gso.Virtio)(unsafe.Pointer(msgs[0].Hdr.Iov.Base))
			if head[1] != 0 {
				return 0, unix.EINVAL
			}
			return real(fd, msgs[:1], flags)
		}
		return 0, 0
	}
	run, want := runOf(659, 10, 3, 1, v.End(2), v.End(2))
	ds := []frame.Datagram{to("one", 1, v.End(2)), run, to("two", 1, v.End(2))}
	send(t, p, ds...)
	all := slices.Concat([]string{"one"}, want, want, []string{"two"})
	if got := payloads(receive(t, b, len(all))); !slices.Equal(got, all) || ds[1].Lost != 0 {
		t.Errorf("%d datagrams arrived changed, lost %d", len(got), ds[1].Lost)
	}
	p.sendmmsg = func(uintptr, []sys.Mmsghdr, int) (int, unix.Errno) { return 0, unix.EAGAIN }
	ds = []frame.Datagram{run, to("x", 1, v.End(2))}
	send(t, p, ds...)
	if ds[0].Lost != 2 || ds[0].Drop != frame.PortFull || ds[1].Lost != 1 || p.Stats().TxLost[frame.PortFull] != 133 {
		t.Errorf("%d, %v, %+v", ds[0].Lost, ds[0].Drop, p.Stats())
	}
}
