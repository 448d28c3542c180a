package underlay

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

func listen(t testing.TB, local string, cfg *UDPConfig) *UDP {
	t.Helper()
	u, err := ListenUDP(netip.MustParseAddrPort(local), cfg)
	must(t, err)
	t.Cleanup(func() { u.Close() })
	return u
}

// An opener opens a UDP underlay. What each of them does is tested with all.
type opener func(t testing.TB, local string, cfg *UDPConfig) ported

// portable opens a Portable that sends and receives several datagrams with a call, or one as on systems other than
// Linux.
func portable(batch bool) opener {
	return func(t testing.TB, local string, cfg *UDPConfig) ported {
		t.Helper()
		u, err := listenPortable(netip.MustParseAddrPort(local), cfg, batch)
		must(t, err)
		t.Cleanup(func() { u.Close() })
		return u
	}
}

// eachUDP runs a test with each.
func eachUDP(t *testing.T, f func(t *testing.T, listen opener)) {
	t.Run("UDP", func(t *testing.T) {
		f(t, func(t testing.TB, local string, cfg *UDPConfig) ported { t.Helper(); return listen(t, local, cfg) })
	})
	t.Run("Portable", func(t *testing.T) { f(t, portable(true)) })
	t.Run("Portable one by one", func(t *testing.T) { f(t, portable(false)) })
}

// onPortable reports whether a test of eachUDP is with a Portable.
func onPortable(t *testing.T) bool { return strings.Contains(t.Name(), "/Portable") }

// eachUDPFamily runs a test with each, over each family.
func eachUDPFamily(t *testing.T, f func(t *testing.T, listen opener, a, b string)) {
	eachUDP(t, func(t *testing.T, listen opener) {
		families(t, func(t *testing.T, a, b string) { f(t, listen, a, b) })
	})
}

// txSocksOf returns the sockets of one kind of set 0.
func txSocksOf(u *UDP, k kind) []*txSock { return u.sets.Get(0).ports.kinds[k].Load().socks }

// txPort returns a source port of set 0.
func txPort(u *UDP, i int) uint16 { return (*u.sets.Get(0).ports.ports.Load())[i] }

func families(t *testing.T, f func(t *testing.T, a, b string)) {
	t.Run("IPv4", func(t *testing.T) { f(t, "127.0.0.1:0", "127.0.0.2:0") })
	t.Run("IPv6", func(t *testing.T) { f(t, "[::1]:0", "[::1]:0") })
}

func TestUDPFlowKeepsItsPort(t *testing.T) {
	eachUDPFamily(t, func(t *testing.T, listen opener, la, lb string) {
		for _, count := range []int{0, 1, 250} {
			const flows = 500
			n := cmp.Or(count, 16)
			a, b := listen(t, la, &UDPConfig{SrcPorts: PortRange{40000, 47999}, SrcPortCount: count}), listen(t, lb, nil)
			eb := endpoint(t, b.LocalAddr())
			var ds []frame.Datagram
			for round := range 2 {
				for flow := range flows {
					ds = append(ds, to(fmt.Sprint(round, flow), uint16(flow<<16/flows), eb))
				}
			}
			port := make(map[string]uint16)
			slots := make(map[int]uint16)
			for len(ds) > 0 {
				some := ds[:min(64, len(ds))]
				ds = ds[len(some):]
				send(t, a, some...)
				for _, r := range receive(t, b, len(some)) {
					flow, p := strings.Fields(r.Payload)[1], r.Outer.Src.Port
					if old, ok := port[flow]; ok && p != old {
						t.Fatalf("flow %s: ports %d and %d", flow, old, p)
					}
					port[flow] = p
					slot := (int(p) - 40000) / (8000 / n)
					if old, ok := slots[slot]; p < 40000 || p > 47999 || ok && old != p {
						t.Errorf("source ports %d and %d in part %d of %d", old, p, slot, n)
					}
					slots[slot] = p
				}
			}
			if len(slots) != n {
				t.Errorf("%d source ports, want %d", len(slots), n)
			}
		}
	})
}

// One datagram to a thousand endpoints is one Send, and few system calls.
func TestUDPReplicate(t *testing.T) {
	eachUDPFamily(t, func(t *testing.T, listen opener, la, lb string) {
		a := listen(t, la, nil)
		b, c := listen(t, lb, nil), listen(t, lb, nil)
		eps := []frame.Endpoint{endpoint(t, b.LocalAddr()), endpoint(t, c.LocalAddr())}
		d := frame.Datagram{Parts: [][]byte{make([]byte, 8), []byte("payload")}, DF: true}
		n := 1000
		if onPortable(t) {
			n = 200 // what a send buffer holds: it waits a millisecond for room, which a busy machine may need longer for
		}
		for i := range n {
			d.To = append(d.To, eps[i%2])
		}
		ds := []frame.Datagram{d}
		send(t, a, ds...)
		if ds[0].Lost != 0 {
			t.Errorf("lost %d: %v", ds[0].Lost, ds[0].Drop)
		}
		receive(t, b, n/2)
		receive(t, c, n/2)
		st := a.Stats()
		if st.TxDatagrams != uint64(n) || st.TxCalls > 8 && !onPortable(t) {
			t.Errorf("%d datagrams in %d calls", st.TxDatagrams, st.TxCalls)
		}
	})
}

// The ICMP error about a closed port fails the next send on that socket, whoever it
// is for. It must not cost a healthy peer anything.
func TestUDPDeadPeerCostsOthersNothing(t *testing.T) {
	eachUDPFamily(t, func(t *testing.T, listen opener, la, lb string) {
		a, b := listen(t, la, nil), listen(t, lb, nil)
		gone := listen(t, lb, nil)
		eb, dead := endpoint(t, b.LocalAddr()), endpoint(t, gone.LocalAddr())
		gone.Close()
		var other frame.Endpoint // of the wrong family
		if a.Is4() {
			other = endpoint(t, netip.MustParseAddrPort("[::1]:9"))
		} else {
			other = endpoint(t, netip.MustParseAddrPort("127.0.0.1:9"))
		}
		const rounds = 50
		var ds []frame.Datagram
		for i := range rounds {
			ds = append(ds, to(fmt.Sprint(i), 0, dead, eb, dead, other, eb))
		}
		send(t, a, ds...)
		for i, r := range receive(t, b, 2*rounds) {
			if r.Payload != fmt.Sprint(i/2) {
				t.Fatalf("datagram %d is %q", i, r.Payload)
			}
		}
		for i := range ds {
			if ds[i].Lost < 1 || ds[i].Lost > 3 || ds[i].Drop != frame.Unreachable {
				t.Errorf("datagram %d: lost %d, %v", i, ds[i].Lost, ds[i].Drop)
			}
		}
		st := a.Stats()
		if st.Errors.Refused == 0 && !onPortable(t) {
			t.Errorf("no error was queued: %+v", st)
		}
		quiet(t, b)
	})
}

func TestUDPSendersTogether(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
		gone := listen(t, "127.0.0.1:0", nil)
		eb, dead := endpoint(t, b.LocalAddr()), endpoint(t, gone.LocalAddr())
		gone.Close()
		const workers, each = 4, 200
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				s := a.Sender(w)
				for i := range each {
					ds := []frame.Datagram{to("x", uint16(i<<8), eb, dead), {To: []frame.Endpoint{eb}}}
					if err := s.Send(ds); err != nil || ds[1].Lost != 0 {
						t.Error(err, ds[1].Drop)
					}
				}
			})
		}
		receive(t, b, 2*workers*each)
		wg.Wait()
		if a.Sender(1) != a.Sender(1) || a.Sender(1) == a.Sender(2) {
			t.Error("senders are not one for each worker")
		}
	})
}
