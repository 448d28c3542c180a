package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// sockets returns the UDP sockets of a host.
func sockets(h *netns.Host) string { return h.Run("ss", "-Hanu") }

// A wildcard address is one like another, and whoever wants the port meanwhile and
// afterwards finds it taken.
func TestSetLocalWildcard(t *testing.T) {
	for _, f := range localFamilies {
		for _, queues := range []int{1, 2} {
			t.Run(fmt.Sprint(f.name, "/", queues), func(t *testing.T) {
				h := f.host(t)
				var u, peer *UDP
				h.Do(func() {
					u = listen(t, net.JoinHostPort(f.one, "4789"), &UDPConfig{Queues: queues, SrcPorts: PortRange{50000, 50003}})
					peer = listen(t, net.JoinHostPort(f.peer, "4790"), nil)
				})
				var wg sync.WaitGroup
				var got, back atomic.Uint64
				for _, r := range u.Readers() {
					underlaytest.Reading(t, &wg, r, func(*frame.Outer) { got.Add(1) })
				}
				underlaytest.Reading(t, &wg, peer.Readers()[0], func(*frame.Outer) { back.Add(1) })
				for i, a := range []string{f.wild, f.two, f.wild, f.one} {
					if err := u.SetLocal(netip.MustParseAddr(a)); err != nil {
						t.Fatalf("%s: %v", a, err)
					}
					at := a
					if a == f.wild {
						at = f.two
					}
					g, b := got.Load(), back.Load()
					for k := range uint16(32) {
						_ = peer.Sender(0).Send([]frame.Datagram{to("x", k<<11, endpoint(t, addrPort(at, 4789)))})
						_ = u.Sender(0).Send([]frame.Datagram{to("x", k<<11, endpoint(t, addrPort(f.peer, 4790)))})
					}
					underlaytest.Until(t, "both ways", func() bool { return got.Load() == g+32 && back.Load() == b+32 })
					h.Do(func() {
						x, err := ListenUDP(addrPort(at, 4789), &UDPConfig{Queues: 2})
						if !errors.Is(err, syscall.EADDRINUSE) {
							t.Errorf("round %d: another got the port: %v", i, err)
						}
						if err == nil {
							x.Close()
						}
					})
				}
				u.Close()
				peer.Close()
				wg.Wait()
			})
		}
	}
}

// A paused underlay stays paused, and receives when it goes on.
func TestSetLocalPaused(t *testing.T) {
	f := localFamilies[0]
	h := f.host(t)
	var u *UDP
	h.Do(func() { u = listen(t, f.one+":4789", nil) })
	u.Pause()
	if err := u.SetLocal(netip.MustParseAddr(f.two)); err != nil {
		t.Fatal(err)
	}
	b := frame.NewBatch(nil)
	if err := u.Readers()[0].Read(b); !errors.Is(err, frame.ErrPaused) {
		t.Error(err)
	}
	u.Resume()
	if err := u.Sender(0).Send([]frame.Datagram{to("x", 0, endpoint(t, u.LocalAddr()))}); err != nil {
		t.Fatal(err)
	}
	if err := u.Readers()[0].Read(b); err != nil || string(b.Frames[0].Bytes()) != "x" {
		t.Error(err)
	}
}

// The settings of the sockets come along: sets of transmit sockets, offloads, filters.
func TestSetLocalKeepsSettings(t *testing.T) {
	f := localFamilies[0]
	h := f.host(t)
	var u *UDP
	h.Do(func() { u = listen(t, f.one+":4789", nil) })
	set, err := u.Sockets(TxConfig{SrcPorts: PortRange{40000, 40003}, Checksum: ChecksumOn})
	if err != nil {
		t.Fatal(err)
	}
	send := func() (ports []uint16) {
		for k := range uint16(4) {
			d := to("x", k<<14, endpoint(t, u.LocalAddr()))
			d.Set = set
			if err := u.Sender(0).Send([]frame.Datagram{d}); err != nil || d.Drop != 0 {
				t.Fatal(err, d.Drop)
			}
		}
		r, _ := runOf(8000, 1000, 4, 0, endpoint(t, u.LocalAddr()))
		if err := u.Sender(0).Send([]frame.Datagram{r}); err != nil {
			t.Fatal(err)
		}
		b := frame.NewBatch(nil)
		for n := 0; n < 12; n += len(b.Frames) {
			if err := u.Readers()[0].Read(b); err != nil {
				t.Fatal(err)
			}
			for _, o := range b.Outer {
				ports = append(ports, o.Src.Port)
			}
		}
		return ports
	}
	send()
	runs := u.Stats().RxRuns
	if err := u.SetLocal(netip.MustParseAddr(f.two)); err != nil {
		t.Fatal(err)
	}
	ports := send()
	for p := uint16(40000); p < 40004; p++ {
		if !slices.Contains(ports, p) {
			t.Errorf("nothing from port %d: %d", p, ports)
		}
	}
	if n := u.Stats().RxRuns; n != 2*runs || runs == 0 {
		t.Errorf("%d runs, %d before", n, runs)
	}
}
