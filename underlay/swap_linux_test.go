package underlay

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/vtep"
)

// localFamily is two addresses of one host, which a test moves a VTEP between.
type localFamily struct{ name, one, two, peer, wild, bits string }

var localFamilies = []localFamily{
	{"IPv4", "10.7.0.1", "10.7.0.2", "10.7.0.9", "0.0.0.0", "/24"},
	{"IPv6", "fd07::1", "fd07::2", "fd07::9", "::", "/64"},
}

func (f localFamily) host(t *testing.T) *netns.Host {
	h := netns.New(t).Host("a")
	for _, a := range []string{f.one, f.two, f.peer} {
		h.Addr("lo", a+f.bits)
		// The kernel enters the route of an IPv6 address in its own time.
		h.Until("a route to "+a, func() bool {
			out, err := h.Try(t.Context(), "ip", "route", "get", a)
			return err == nil && strings.HasPrefix(out, "local ")
		})
	}
	return h
}

func addrPort(a string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(a), port)
}

// leastOpenFiles is openFiles without those that are closed once a call under way has ended.
func leastOpenFiles(t *testing.T) int {
	t.Helper()
	n := underlaytest.OpenFiles(t)
	for range 50 {
		time.Sleep(time.Millisecond)
		n = min(n, underlaytest.OpenFiles(t))
	}
	return n
}

// backlogDrops returns how many packets of all loopback and veth devices of the machine had
// no room in the queue of a processor (the second column of softnet_stat): others' traffic
// fills it too.
func backlogDrops(t *testing.T) (n uint64) {
	t.Helper()
	text := check.Must(os.ReadFile("/proc/net/softnet_stat"))(t)
	for line := range strings.Lines(string(text)) {
		var done, dropped uint64
		check.Must(fmt.Sscanf(line, "%x %x", &done, &dropped))(t)
		n += dropped
	}
	return n
}

// swap gives a VTEP another underlay, opened in the namespace of h.
func swap[U vtep.Underlay](t *testing.T, h *netns.Host, v *vtep.VTEP, open func() U) (u U) {
	t.Helper()
	var err error
	h.Do(func() { u = open(); err = v.SetUnderlay(u) })
	must(t, err)
	return u
}

// overlay returns an Ethernet frame between two hosts that exist nowhere else, n bytes long.
func overlay(n int) []byte {
	return append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 7, 0x88, 0xb5}, make([]byte, n-14)...)
}

// While a VTEP goes to and fro between two addresses, under writes of several workers, lone frames
// and runs, no write fails and nothing that was sent is lost.
func TestSwapLosesNothingSent(t *testing.T) {
	for _, f := range localFamilies {
		t.Run(f.name, func(t *testing.T) {
			h := f.host(t)
			at := func(a string) func() *UDP {
				return func() *UDP { return listen(t, net.JoinHostPort(a, "4789"), nil) }
			}
			var peer *UDP
			h.Do(func() { peer = at(f.peer)() })
			u := at(f.one)
			var first *UDP
			h.Do(func() { first = u() })
			v := check.Must(vtep.New(nil, first))(t)
			num, err := v.AddPeer(peer.LocalAddr())
			must(t, err)
			var got, others atomic.Uint64
			var readers, writers sync.WaitGroup
			one, two := addrPort(f.one, 0), addrPort(f.two, 0)
			underlaytest.Reading(t, &readers, peer.Readers()[0], func(o *frame.Outer) {
				if a := o.Src.AddrPort().Addr(); a != one.Addr() && a != two.Addr() {
					others.Add(1)
				}
				got.Add(1)
			})
			stop := make(chan struct{})
			for w := range 3 {
				writers.Go(func() {
					x := v.Writer(w)
					var outs [12]frame.Out
					for i := uint32(1); ; i++ {
						for k := range outs {
							g := frame.Make(overlay(100))
							if g.Hash = i << 12; k == 0 {
								g.Hash ^= 1 << 15
							}
							outs[k] = frame.Out{F: &g, Peer: num, Tag: 7}
						}
						if err := x.Write(outs[:]); err != nil {
							t.Errorf("write: %v", err)
							return
						}
						for k := range outs {
							if outs[k].Drop != frame.NotDropped {
								t.Errorf("dropped as %v", outs[k].Drop)
							}
						}
						select {
						case <-stop:
							return
						case <-time.After(200 * time.Microsecond):
						}
					}
				})
			}
			files, backlog := 0, backlogDrops(t)
			for i := range 60 {
				to := []string{f.two, f.one}[i%2]
				swap(t, h, v, at(to))
				from := got.Load()
				fake.Until(t, "datagrams", func() bool { return got.Load() > from })
				if i == 20 {
					files = leastOpenFiles(t)
				}
			}
			if n := leastOpenFiles(t); n > files+4*16 { // sockets for runs come with the first run
				t.Errorf("%d descriptors, there were %d", n, files)
			}
			close(stop)
			writers.Wait()
			st := v.Stats()
			if st.Lost.Total() != 0 {
				t.Errorf("lost: %v", st.Lost)
			}
			there := func() uint64 { return got.Load() + peer.Stats().RxOverflow }
			for end := time.Now().Add(5 * time.Second); there() != st.Tx.Frames && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if n := there(); n > st.Tx.Frames || n+backlogDrops(t)-backlog < st.Tx.Frames {
				t.Errorf("%d datagrams of %d arrived: %+v\n%s", there(), st.Tx.Frames, peer.Stats(), h.Run("nstat", "-asz"))
			}
			if others.Load() != 0 {
				t.Errorf("%d datagrams from another address", others.Load())
			}
			v.Close()
			peer.Close()
			readers.Wait()
		})
	}
}

// Readers of the VTEP are not restarted: those that wait receive at the new address, from every
// queue. Nobody listens at the old one.
func TestSwapReaders(t *testing.T) {
	for _, f := range localFamilies {
		t.Run(f.name, func(t *testing.T) {
			h := f.host(t)
			for _, raw := range []bool{false, true} {
				at := func(a string, queues int) vtep.Underlay {
					if raw {
						return listenIP(t, a, &IPConfig{Queues: queues})
					}
					return listen(t, net.JoinHostPort(a, "4789"), &UDPConfig{Queues: queues})
				}
				var first, peer vtep.Underlay
				h.Do(func() { first, peer = at(f.one, 2), at(f.peer, 1) })
				kind := map[bool]encap.Type{false: encap.TypeVXLAN, true: encap.TypeIPIP}[raw]
				v, err := vtep.New(&vtep.Config{Type: kind}, first)
				if err == nil {
					_, err = v.AddPeer(netip.AddrPortFrom(netip.MustParseAddr(f.peer), 0))
				}
				if err == nil {
					err = v.Control().Open(0)
				}
				must(t, err)
				var wg sync.WaitGroup
				var got [2]atomic.Uint64 // at one and two
				var queues [5]atomic.Uint64
				for i, r := range v.Readers() {
					underlaytest.Reading(t, &wg, r, func(o *frame.Outer) {
						queues[i].Add(1)
						switch o.Dst.AddrPort().Addr() {
						case netip.MustParseAddr(f.one):
							got[0].Add(1)
						case netip.MustParseAddr(f.two):
							got[1].Add(1)
						default:
							t.Errorf("to %v", o.Dst)
						}
					})
				}
				head := append([]byte{8, 0, 0, 0, 0, 0, 0, 0}, overlay(60)...)
				send := func(a string) {
					for i := range uint16(64) {
						p := string(head)
						if raw {
							p = string(innerIPv4(byte(i)))
						}
						must(t, peer.Sender(0).Send([]frame.Datagram{to(p, i<<10, endpoint(t, addrPort(a, peer.LocalAddr().Port())))}))
					}
				}
				send(f.one)
				fake.Until(t, "64 at the first address", func() bool { return got[0].Load() == 64 })
				for round := range 3 {
					for i, a := range []string{f.two, f.one} {
						swap(t, h, v, func() vtep.Underlay { return at(a, 2) })
						for k := range queues {
							queues[k].Store(0)
						}
						from := got[1-i].Load()
						send(a)
						fake.Until(t, "64 at the new address", func() bool { return got[1-i].Load() == from+64 })
						busy := 0
						for k := range queues {
							if queues[k].Load() > 0 {
								busy++
							}
						}
						if busy != 2 {
							t.Errorf("round %d: %d queues of 2 received", round, busy)
						}
						if out := h.Run("ss", "-Hanuw"); strings.Contains(out, net.JoinHostPort([]string{f.one, f.two}[i], "4789 ")) {
							t.Errorf("sockets at the old address:\n%s", out)
						}
					}
				}
				v.Close()
				peer.Close()
				wg.Wait()
			}
		})
	}
}

// innerIPv4 is a packet that a raw underlay takes: to one of many addresses.
func innerIPv4(n byte) []byte {
	b := make([]byte, 20)
	b[0], b[3], b[8], b[9], b[12], b[16], b[19] = 0x45, 20, 64, 17, 10, 10, n
	return b
}

// A group stays joined, and its packets come in while the underlay changes.
func TestSwapGroups(t *testing.T) {
	f := localFamilies[0]
	h := f.host(t)
	group := netip.MustParseAddrPort("239.1.1.1:4789")
	h.Run("ip", "link", "set", "lo", "multicast", "on")
	open := func(a string) func() *UDP {
		return func() *UDP { return listen(t, a+":4789", &UDPConfig{MulticastDevice: "lo"}) }
	}
	var first *UDP
	h.Do(func() { first = open(f.one)() })
	v, err := vtep.New(nil, first)
	if err == nil {
		err = v.Control().Open(0)
	}
	if err == nil {
		h.Do(func() { err = v.SetFlood(0, group) })
	}
	must(t, err)
	if s := h.Run("ip", "maddr", "show", "dev", "lo"); strings.Count(s, "239.1.1.1") != 1 {
		t.Errorf("before: %s", s)
	}
	second := swap(t, h, v, open(f.two))
	if s := h.Run("ip", "maddr", "show", "dev", "lo"); strings.Count(s, "239.1.1.1") != 1 || strings.Contains(s, "users 2") {
		t.Errorf("after: %s", s)
	}
	if err := second.Leave(group.Addr()); err != nil {
		t.Error(err)
	}
	v.Close()
}
