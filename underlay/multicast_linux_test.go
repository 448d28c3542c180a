package underlay_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
)

// ether is hosts on one Ethernet, each with an underlay: host i has address .i+1, and a packet
// underlay there .i+101.
type ether struct {
	t     *testing.T
	sw    *netns.Host
	hosts []*netns.Host
	us    []grouped
	ears  []*underlaytest.Ear
}

// grouped is an underlay that can be in groups.
type grouped interface {
	ported
	Join(netip.Addr) error
	Leave(netip.Addr) error
}

var (
	_ grouped = (*underlay.UDP)(nil)
	_ grouped = (*underlay.Portable)(nil)
	_ grouped = (*afpacket.Underlay)(nil)
)

var groupFamilies = []struct{ name, local, bits, group string }{
	{"IPv4", "10.0.0.%d", "/24", "239.1.1.%d"},
	{"IPv6", "fd00::%d", "/64", "ff05::1:%d"},
	{"IPv6 link-local groups", "fd00::%d", "/64", "ff02::1:%d"},
}

func newEther(t *testing.T, local, bits string, hosts int, cfg underlay.UDPConfig) *ether {
	return newEtherOf(t, local, bits, hosts, func(i int) grouped {
		return listen(t, netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(local, i+1)), 4789).String(), &cfg)
	})
}

// eachEther runs a test with UDP underlays, with packet underlays, and with both; and with portable
// ones and both of UDP.
func eachEther(t *testing.T, families, hosts, queues int, f func(t *testing.T, w *ether, group string)) {
	for _, fam := range groupFamilies[:families] {
		for _, kind := range []string{"UDP", "Packet", "mixed", "Portable", "UDP mixed"} {
			t.Run(fam.name+" "+kind, func(t *testing.T) {
				f(t, newEtherOf(t, fam.local, fam.bits, hosts, func(i int) grouped {
					at := netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(fam.local, i+1)), 4789)
					if kind == "Portable" || kind == "UDP mixed" && i%2 == 0 {
						return portable(t, at)
					}
					if strings.HasPrefix(kind, "UDP") || kind == "mixed" && i%2 == 1 {
						return listen(t, at.String(), &underlay.UDPConfig{Queues: queues})
					}
					at = netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(fam.local, i+101)), 4789)
					p := check.Must(afpacket.Listen(at, &afpacket.Config{Device: "eth0", Queues: queues}))(t)
					return p
				}), fam.group)
			})
		}
	}
}

// newEtherOf makes hosts, and in the namespace of each an underlay by open.
func newEtherOf(t *testing.T, local, bits string, hosts int, open func(i int) grouped) *ether {
	n := netns.New(t)
	w := &ether{t: t, sw: n.Switch("sw")}
	for i := range hosts {
		h := n.Host(fmt.Sprint("h", i+1))
		n.Plug(h, fmt.Sprintf(local, i+1)+bits, w.sw)
		h.Ready()
		var u grouped
		h.Do(func() { u = open(i) })
		e := underlaytest.Listen(u)
		t.Cleanup(func() { u.Close(); e.Wait() })
		w.hosts, w.us, w.ears = append(w.hosts, h), append(w.us, u), append(w.ears, e)
	}
	return w
}

func (w *ether) join(i int, group string) {
	w.t.Helper()
	var err error
	w.hosts[i].Do(func() { err = w.us[i].Join(netip.MustParseAddr(group)) })
	check.OK(w.t, err)
}

func (w *ether) leave(i int, group string) {
	w.t.Helper()
	check.OK(w.t, w.us[i].Leave(netip.MustParseAddr(group)))
}

func (w *ether) group(a string) frame.Endpoint {
	return underlaytest.Endpoint(w.t, netip.AddrPortFrom(netip.MustParseAddr(a), 4789))
}

// settle sends to each host what comes behind all that is on the way, and waits for it.
func (w *ether) settle(from int) {
	w.t.Helper()
	mark := fmt.Sprint("mark ", time.Now().UnixNano())
	for i := range w.us {
		if i != from {
			underlaytest.Send(w.t, w.us[from], underlaytest.To(mark, 0, underlaytest.Endpoint(w.t, w.us[i].LocalAddr())))
			fake.Until(w.t, "mark", func() bool { return w.ears[i].Count(mark) == 1 })
		}
	}
	time.Sleep(20 * time.Millisecond) // what is for groups has another socket
}

// Who is in a group gets one copy of each datagram, from whichever source port, whatever the
// number of its queues; who is not, and the sender, get none. The last Leave counts.
func TestGroupOnce(t *testing.T) {
	eachEther(t, 3, 4, 2, func(t *testing.T, w *ether, group string) {
		one, two := fmt.Sprintf(group, 1), fmt.Sprintf(group, 2)
		w.join(0, one) // the sender itself
		w.join(1, one)
		w.join(2, one)
		w.join(2, one)
		w.join(3, two)
		const n = 64
		for i := range n {
			underlaytest.Send(t, w.us[0], underlaytest.To(fmt.Sprint("one ", i), uint16(i)<<10, w.group(one)))
		}
		underlaytest.Send(t, w.us[0], underlaytest.To("two", 0, w.group(two)))
		fake.Until(w.t, "all", func() bool {
			return len(w.ears[1].All()) == n && len(w.ears[2].All()) == n && w.ears[3].Count("two") == 1
		})
		w.settle(0)
		for i, want := range []int{0, n, n, 0} {
			got, other := 0, 0
			for p, c := range w.ears[i].All() {
				if c != 1 {
					t.Errorf("host %d got %q %d times", i, p, c)
				}
				switch {
				case strings.HasPrefix(p, "one "):
					got++
				case p == "two":
					other++
				}
			}
			if got != want || other != 0 && i != 3 {
				t.Errorf("host %d: %d of group one, want %d; %d of group two", i, got, want, other)
			}
		}
		if !w.ears[1].Seen(w.us[0].LocalAddr().Addr(), netip.MustParseAddr(one)) {
			t.Error("not from the sender to the group")
		}

		w.leave(1, one)
		w.leave(2, one)
		underlaytest.Send(t, w.us[0], underlaytest.To("after", 0, w.group(one)))
		fake.Until(w.t, "after", func() bool { return w.ears[2].Count("after") == 1 })
		w.settle(0)
		if k := w.ears[1].Count("after"); k != 0 {
			t.Errorf("%d copies to who has left", k)
		}
		if err := w.us[1].Leave(netip.MustParseAddr(one)); err == nil {
			t.Error("left twice")
		}
	})
}

// There may be more groups than igmp_max_memberships (20), and runs go to groups as they go to
// hosts.
func TestManyGroupsAndRuns(t *testing.T) {
	eachEther(t, 2, 2, 1, func(t *testing.T, w *ether, group string) {
		if isPortable(w.us[1]) { // one socket for all
			w.hosts[1].Sysctl("net.ipv4.igmp_max_memberships", "100")
		}
		for i := range 60 {
			w.join(1, fmt.Sprintf(group, i+1))
		}
		for i := range 60 {
			if i%2 == 1 {
				w.leave(1, fmt.Sprintf(group, i+1))
			}
		}
		w.join(0, fmt.Sprintf(group, 1)) // so that there is an interface to send through
		for i := range 60 {
			underlaytest.Send(t, w.us[0], underlaytest.To(fmt.Sprint("to ", i), 0, w.group(fmt.Sprintf(group, i+1))))
		}
		run := underlaytest.To(strings.Repeat("a", 1000)+strings.Repeat("b", 1000)+strings.Repeat("c", 10), 7, w.group(fmt.Sprintf(group, 1)))
		run.Seg = 1000
		underlaytest.Send(t, w.us[0], run)
		fake.Until(w.t, "the run", func() bool { return w.ears[1].Count("cccccccccc") == 1 })
		w.settle(0)
		for i := range 60 {
			if got := w.ears[1].Count(fmt.Sprint("to ", i)); got != 1-i%2 {
				t.Errorf("group %d: %d copies", i, got)
			}
		}
		if a, b := w.ears[1].Count(strings.Repeat("a", 1000)), w.ears[1].Count(strings.Repeat("b", 1000)); a != 1 || b != 1 {
			t.Errorf("of the run %d and %d", a, b)
		}
		if st := w.us[0].Stats(); st.TxRuns != 1 && !isPortable(w.us[0]) {
			t.Errorf("%d runs sent", st.TxRuns)
		}
	})
}

// Underlays on one host share a group; each gets its copy. So does one on the wildcard address,
// whose other sockets hear no group.
func TestGroupSharedOnOneHost(t *testing.T) {
	for _, fam := range groupFamilies[:2] {
		for _, second := range []string{fmt.Sprintf(fam.local, 77), map[bool]string{true: "0.0.0.0", false: "::"}[fam.name == "IPv4"]} {
			t.Run(fam.name+" "+second, func(t *testing.T) {
				w := newEther(t, fam.local, fam.bits, 1, underlay.UDPConfig{})
				n := netns.New(t)
				h := n.Host("far")
				n.Link(h, fmt.Sprintf(fam.local, 2)+fam.bits, w.hosts[0], fmt.Sprintf(fam.local, 78)+fam.bits)
				w.us[0].Close()
				var a, b, c *underlay.UDP
				cfg := &underlay.UDPConfig{MulticastDevice: "eth1", Queues: 2}
				w.hosts[0].Addr("eth1", fmt.Sprintf(fam.local, 77)+fam.bits)
				w.hosts[0].Do(func() {
					if !netip.MustParseAddr(second).IsUnspecified() {
						a = listen(t, netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(fam.local, 78)), 4789).String(), cfg)
					}
					b = listen(t, netip.AddrPortFrom(netip.MustParseAddr(second), 4789).String(), cfg)
				})
				h.Do(func() {
					c = listen(t, netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(fam.local, 2)), 4789).String(), nil)
				})
				group := fmt.Sprintf(fam.group, 1)
				var ears []*underlaytest.Ear
				for _, u := range []*underlay.UDP{a, b, c} {
					if u == nil {
						continue
					}
					check.OK(t, u.Join(netip.MustParseAddr(group)))
					e := underlaytest.Listen(u)
					ears = append(ears, e)
					defer func() { u.Close(); e.Wait() }()
				}
				for i := range 20 {
					underlaytest.Send(t, c, underlaytest.To(fmt.Sprint(i), uint16(i)<<11, w.group(group)))
				}
				for _, e := range ears[:len(ears)-1] {
					fake.Until(w.t, "all", func() bool { return len(e.All()) == 20 })
				}
				time.Sleep(20 * time.Millisecond)
				for k, e := range ears[:len(ears)-1] {
					for i := range 20 {
						if got := e.Count(fmt.Sprint(i)); got != 1 {
							t.Errorf("underlay %d: %d copies of %d", k, got, i)
						}
					}
				}
			})
		}
	}
}

// loopGroups is a Control that has sockets hear what they send to groups.
func loopGroups(network, address string, c syscall.RawConn) (err error) {
	e := c.Control(func(fd uintptr) {
		if network == "udp4" {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 1)
		} else {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 1)
		}
	})
	return errors.Join(e, err)
}

// Sockets that loop hear themselves: what a VTEP's own-address drop is for.
func TestGroupLoop(t *testing.T) {
	for _, fam := range groupFamilies {
		t.Run(fam.name, func(t *testing.T) {
			w := newEther(t, fam.local, fam.bits, 1, underlay.UDPConfig{Control: loopGroups})
			w.join(0, fmt.Sprintf(fam.group, 1))
			underlaytest.Send(t, w.us[0], underlaytest.To("echo", 0, w.group(fmt.Sprintf(fam.group, 1))))
			fake.Until(w.t, "echo", func() bool { return w.ears[0].Count("echo") == 1 })
		})
	}
}

// The memberships follow an interface that goes down and comes back, and one that is deleted
// and made again; so does what is sent.
func TestGroupFollowsDevice(t *testing.T) {
	for _, fam := range groupFamilies[:2] {
		for _, cfg := range []underlay.UDPConfig{{}, {Device: "eth0"}, {MulticastDevice: "eth0"}} {
			t.Run(fmt.Sprintf("%s Device %q MulticastDevice %q", fam.name, cfg.Device, cfg.MulticastDevice), func(t *testing.T) {
				w := newEther(t, fam.local, fam.bits, 2, cfg)
				group := fmt.Sprintf(fam.group, 1)
				w.join(0, group)
				w.join(1, group)
				number := 0
				both := func(what string) {
					t.Helper()
					for i := range 2 {
						first := number + 1
						fake.Until(w.t, fmt.Sprintf("%s: from %d", what, i), func() bool {
							number++
							underlaytest.Send(t, w.us[i], underlaytest.To(fmt.Sprint(number), 0, w.group(group)))
							for k := first; k <= number; k++ {
								if w.ears[1-i].Count(fmt.Sprint(k)) == 1 {
									return true
								}
							}
							return false
						})
					}
				}
				both("at first")
				h := w.hosts[1]
				h.IP("link", "set", "eth0", "down")
				h.IP("link", "set", "eth0", "up")
				if fam.name == "IPv6" {
					h.Addr("eth0", fmt.Sprintf(fam.local, 2)+fam.bits)
				}
				both("after down and up")
				h.IP("link", "del", "eth0")
				h.IP("link", "add", "eth0", "type", "veth", "peer", "name", "new", "netns", w.sw.NS)
				w.sw.IP("link", "set", "new", "master", "br0")
				w.sw.Up("new")
				h.Addr("eth0", fmt.Sprintf(fam.local, 2)+fam.bits)
				h.Up("eth0")
				both("after it was made again")
			})
		}
	}
}

func TestGroupErrors(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		u, err := underlay.ListenUDP(netip.MustParseAddrPort("10.9.0.1:4789"), &underlay.UDPConfig{MulticastDevice: "nope"})
		if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "UDPConfig.MulticastDevice") {
			t.Errorf("%v, %v", u, err)
		}
		u = listen(t, "10.9.0.1:4789", nil)
		for _, g := range []string{"10.9.0.2", "ff05::1", "0.0.0.0", "255.255.255.255"} {
			if err := u.Join(netip.MustParseAddr(g)); err == nil || !strings.HasPrefix(err.Error(), "underlay: ") {
				t.Errorf("joined %s: %v", g, err)
			}
		}
		if err := u.Leave(netip.MustParseAddr("239.1.1.1")); err == nil {
			t.Error("left what was not joined")
		}
		// An interface that is not the one the sockets are bound to.
		v := listen(t, "10.9.0.1:4790", &underlay.UDPConfig{Device: "va", MulticastDevice: "vb"})
		if err := v.Join(netip.MustParseAddr("239.1.1.1")); err == nil || !strings.Contains(err.Error(), "UDPConfig.MulticastDevice") {
			t.Errorf("%v", err)
		}
		u.Close()
		if err := u.Join(netip.MustParseAddr("239.1.1.1")); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		// An address of no interface.
		underlaytest.IP(t, "addr del 10.9.0.1/24 dev va")
		if err := v.Join(netip.MustParseAddr("239.1.1.2")); err == nil {
			t.Error("joined")
		}
	})
}

// MulticastDevice is where groups are sent to, whatever interface has the local address; so it is
// of sockets that are opened later.
func TestGroupSentThroughDevice(t *testing.T) {
	for _, fam := range groupFamilies {
		t.Run(fam.name, func(t *testing.T) {
			n := netns.New(t)
			a, b := n.Host("a"), n.Host("b")
			n.Link(a, fmt.Sprintf(fam.local, 1)+fam.bits, b, "")
			n.Link(a, "", b, "")
			a.Ready()
			c0, c1 := b.Capture("eth0", "udp port 4789"), b.Capture("eth1", "udp port 4789")
			for _, dev := range []string{"", "eth0", "eth1"} {
				var u *underlay.UDP
				a.Do(func() {
					u = listen(t, netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(fam.local, 1)), 4789).String(), &underlay.UDPConfig{MulticastDevice: dev})
				})
				group := fmt.Sprintf(fam.group, 1)
				check.OK(t, u.Join(netip.MustParseAddr(group)))
				e := underlaytest.Endpoint(t, netip.AddrPortFrom(netip.MustParseAddr(group), 4789))
				ds := []frame.Datagram{underlaytest.To("on "+dev+" with DF", 0, e), underlaytest.To("on "+dev+" without", 0, e)}
				ds[1].DF = false
				underlaytest.Send(t, u, ds...)
				u.Close()
			}
			for i, c := range []*netns.Capture{c0, c1} {
				var got []string
				for _, p := range c.Stop() {
					got = append(got, string(p.Data[len(p.Data)-len("with DF"):]))
				}
				if want := 4 - 2*i; len(got) != want {
					t.Errorf("%d packets on eth%d, want %d: %q", len(got), i, want, got)
				}
			}
		})
	}
}

func isPortable(u any) bool { _, ok := u.(*underlay.Portable); return ok }

func portable(t testing.TB, local netip.AddrPort) *underlay.Portable {
	t.Helper()
	u := check.Must(underlay.ListenPortable(local, nil))(t)
	return u
}

func listen(t testing.TB, local string, cfg *underlay.UDPConfig) *underlay.UDP {
	t.Helper()
	u := check.Must(underlay.ListenUDP(netip.MustParseAddrPort(local), cfg))(t)
	t.Cleanup(func() { u.Close() })
	return u
}
