package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// localFamily is two addresses of one host, which a test moves an underlay between.
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
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var done, dropped uint64
		if _, err := fmt.Sscanf(line, "%x %x", &done, &dropped); err != nil {
			t.Fatal(err)
		}
		n += dropped
	}
	return n
}

// While an underlay goes to and fro between two addresses, under sends of several workers,
// of every kind of socket, no send fails and nothing that was sent is lost.
func TestSetLocalLosesNothingSent(t *testing.T) {
	for _, f := range localFamilies {
		t.Run(f.name, func(t *testing.T) {
			h := f.host(t)
			var u, peer *UDP
			h.Do(func() {
				u = listen(t, net.JoinHostPort(f.one, "4789"), nil)
				peer = listen(t, net.JoinHostPort(f.peer, "4789"), nil)
			})
			var got, others atomic.Uint64
			var readers, senders sync.WaitGroup
			one, two := addrPort(f.one, 0), addrPort(f.two, 0)
			underlaytest.Reading(t, &readers, peer.Readers()[0], func(o *frame.Outer) {
				if a := o.Src.AddrPort().Addr(); a != one.Addr() && a != two.Addr() {
					others.Add(1)
				}
				got.Add(1)
			})
			stop := make(chan struct{})
			var rounds atomic.Uint64
			for w := range 3 {
				senders.Go(func() {
					s := u.Sender(w)
					for i := uint16(0); ; i++ {
						rounds.Add(1)
						r, _ := runOf(25, 10, 4, i<<12, endpoint(t, peer.LocalAddr()))
						d := to("x", i<<12, endpoint(t, peer.LocalAddr()))
						d.DF, r.DF = i/16%2 == 0, i/16%2 == 0
						if err := s.Send([]frame.Datagram{d, r}); err != nil {
							t.Errorf("send: %v", err)
							return
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
				if err := u.SetLocal(netip.MustParseAddr(to)); err != nil {
					t.Fatal(err)
				}
				if want := addrPort(to, 4789); u.LocalAddr() != want {
					t.Fatalf("LocalAddr %v, want %v", u.LocalAddr(), want)
				}
				from := got.Load()
				underlaytest.Until(t, "datagrams", func() bool { return got.Load() > from })
				if i == 20 {
					underlaytest.Until(t, "all kinds of sockets are open", func() bool { return rounds.Load() > 3*33 })
					files = leastOpenFiles(t)
				}
			}
			if n := leastOpenFiles(t); n != files {
				t.Errorf("%d descriptors, there were %d", n, files)
			}
			close(stop)
			senders.Wait()
			st := u.Stats()
			if st.Lost() != 0 {
				t.Errorf("lost: %v", st.TxLost)
			}
			there := func() uint64 { return got.Load() + peer.Stats().RxOverflow }
			for end := time.Now().Add(5 * time.Second); there() != st.TxDatagrams && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if n := there(); n > st.TxDatagrams || n+backlogDrops(t)-backlog < st.TxDatagrams {
				t.Errorf("%d datagrams of %d arrived: %+v, %+v\n%s", there(), st.TxDatagrams, st, peer.Stats(), h.Run("nstat", "-asz"))
			}
			if others.Load() != 0 {
				t.Errorf("%d datagrams from another address", others.Load())
			}
			u.Close()
			peer.Close()
			readers.Wait()
		})
	}
}

// Readers are not restarted: those that wait receive at the new address, from every queue,
// and say so. Nobody listens at the old one. What they have counted stays.
func TestSetLocalReaders(t *testing.T) {
	for _, f := range localFamilies {
		t.Run(f.name, func(t *testing.T) {
			h := f.host(t)
			for _, raw := range []bool{false, true} {
				var u, peer interface {
					Readers() []frame.Reader
					Sender(int) frame.Sender
					SetLocal(netip.Addr) error
					LocalAddr() netip.AddrPort
					Stats() Stats
					Close() error
				}
				h.Do(func() {
					if raw {
						u, peer = listenIP(t, f.one, &IPConfig{Queues: 2}), listenIP(t, f.peer, nil)
					} else {
						u = listen(t, net.JoinHostPort(f.one, "4789"), &UDPConfig{Queues: 2})
						peer = listen(t, net.JoinHostPort(f.peer, "4789"), nil)
					}
				})
				var wg sync.WaitGroup
				var got [2]atomic.Uint64 // at one and two
				var queues [4]atomic.Uint64
				for i, r := range u.Readers() {
					underlaytest.Reading(t, &wg, r, func(o *frame.Outer) {
						queues[i].Add(1)
						switch o.Dst {
						case endpoint(t, addrPort(f.one, u.LocalAddr().Port())):
							got[0].Add(1)
						case endpoint(t, addrPort(f.two, u.LocalAddr().Port())):
							got[1].Add(1)
						default:
							t.Errorf("to %v", o.Dst)
						}
					})
				}
				send := func(a string) {
					for i := range uint16(64) {
						p := string(innerIPv4(byte(i)))
						if err := peer.Sender(0).Send([]frame.Datagram{to(p, i<<10, endpoint(t, addrPort(a, u.LocalAddr().Port())))}); err != nil {
							t.Fatal(err)
						}
					}
				}
				send(f.one)
				underlaytest.Until(t, "64 at the first address", func() bool { return got[0].Load() == 64 })
				for round := range 3 {
					for i, a := range []string{f.two, f.one} {
						if err := u.SetLocal(netip.MustParseAddr(a)); err != nil {
							t.Fatal(err)
						}
						for k := range queues {
							queues[k].Store(0)
						}
						from := got[1-i].Load()
						send(a)
						underlaytest.Until(t, "64 at the new address", func() bool { return got[1-i].Load() == from+64 })
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
				if st := u.Stats(); st.RxDatagrams != 7*64 || st.RxOverflow > 7*64 {
					t.Errorf("%+v", st)
				}
				u.Close()
				peer.Close()
				wg.Wait()
				if err := u.SetLocal(netip.MustParseAddr(f.two)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
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

// On an error nothing has changed, and none of what was opened for it is left.
func TestSetLocalErrors(t *testing.T) {
	for _, f := range localFamilies {
		t.Run(f.name, func(t *testing.T) {
			h := f.host(t)
			var u *UDP
			h.Do(func() {
				u = listen(t, net.JoinHostPort(f.one, "4789"), nil)
				listen(t, net.JoinHostPort(f.two, "4789"), nil) // in the way
			})
			other := map[string]string{"IPv4": "fd07::2", "IPv6": "10.7.0.2"}[f.name]
			group := map[string]string{"IPv4": "224.0.0.9", "IPv6": "ff02::9"}[f.name]
			files := underlaytest.OpenFiles(t)
			before := sockets(h)
			for _, c := range []struct {
				addr string
				want error
				text string
			}{
				{f.two, syscall.EADDRINUSE, "in use"},
				{strings.Replace(strings.Replace(f.one, "10.7.0.1", "10.8.0.1", 1), "fd07::1", "fd08::1", 1), syscall.EADDRNOTAVAIL, "cannot assign"},
				{f.wild, syscall.EADDRINUSE, "in use"},
				{other, nil, "family"},
				{group, nil, "multicast"},
			} {
				err := u.SetLocal(netip.MustParseAddr(c.addr))
				if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "underlay: ") {
					t.Errorf("%s: %v", c.addr, err)
				}
				if u.LocalAddr() != addrPort(f.one, 4789) {
					t.Errorf("%s: LocalAddr %v", c.addr, u.LocalAddr())
				}
			}
			if err := u.SetLocal(netip.Addr{}); err == nil {
				t.Error("no address is one")
			}
			if err := u.SetLocal(netip.MustParseAddr(f.one)); err != nil {
				t.Errorf("its own: %v", err)
			}
			if n := underlaytest.OpenFiles(t); n != files {
				t.Errorf("%d descriptors, there were %d", n, files)
			}
			if after := sockets(h); after != before {
				t.Errorf("sockets:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// A Sender that has chosen a socket which is closed before it sends goes on at the one in its
// place, and what the old receive sockets have dropped stays counted.
func TestSetLocalBetweenChoiceAndSend(t *testing.T) {
	f := localFamilies[0]
	h := f.host(t)
	var u *UDP
	h.Do(func() { u = listen(t, f.one+":4789", &UDPConfig{RecvBuffer: 1}) })
	for range 200 {
		send(t, u, to(string(pattern(1000)), 0, endpoint(t, u.LocalAddr())))
	}
	dropped := u.Stats().RxOverflow
	s := newSender(&u.base)
	s.Window, s.set = []frame.Datagram{to("x", 0, endpoint(t, addrPort(f.two, 4789)))}, u.sets.Get(0)
	chosen, _ := s.socket(0, s.kind(&s.Window[0], 1))
	s.add(chosen, 0)
	for _, a := range []string{f.two, f.one, f.two} {
		if err := u.SetLocal(netip.MustParseAddr(a)); err != nil {
			t.Fatal(err)
		}
	}
	if s.flush(chosen); s.down || s.Window[0].Lost != 0 {
		t.Errorf("lost %d, %v", s.Window[0].Lost, s.Window[0].Drop)
	}
	if got := receive(t, u, 1); got[0].Payload != "x" || got[0].Outer.Src.Host() != endpoint(t, addrPort(f.two, 0)) {
		t.Errorf("%+v", got)
	}
	if n := u.Stats().RxOverflow; n != dropped || dropped == 0 {
		t.Errorf("%d dropped, %d before", n, dropped)
	}
}
