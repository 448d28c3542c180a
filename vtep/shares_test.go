package vtep

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// six returns the address of host i in an IPv6 prefix, and four in an IPv4 one.
func six(prefix, i int) netip.AddrPort {
	var a [16]byte
	binary.BigEndian.PutUint64(a[:], 0x20010db8<<32|uint64(prefix))
	binary.BigEndian.PutUint64(a[8:], uint64(i)+1)
	return netip.AddrPortFrom(netip.AddrFrom16(a), 4789)
}

func four(prefix, i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{20 + byte(prefix>>16), byte(prefix >> 8), byte(prefix), byte(i + 1)}), 4789)
}

// arena is a VTEP whose learned peers a test fills. A step is the time between two Retires.
type arena struct {
	t *testing.T
	v *VTEP
	r *reader
}

func newArena(t *testing.T, cfg *Config) *arena {
	v := newVTEP(t, cfg, fake4(), fake6())
	check.OK(t, v.Control().Open(vni))
	return &arena{t, v, v.Readers()[0].(*reader)}
}

// from has n packets come from an address, and reports whether they had a peer's number.
func (a *arena) from(addr netip.AddrPort, n int) bool {
	packet := vx(vni, inner(1))
	for range n {
		f := frame.Make(packet)
		if drop := a.r.accept(&f, &frame.Outer{Src: endpoint(a.t, addr)}); drop != frame.NotDropped {
			a.t.Fatal(drop)
		}
	}
	a.r.peer(&frame.Endpoint{}) // the batch ends
	_, ok := a.v.byHost.Load(hostKey(endpoint(a.t, addr).Host()))
	return ok
}

// step is what the switch does every ten seconds; its FDB names whom it can.
func (a *arena) step() {
	a.v.Control().Free(a.v.Control().Retire(func(uint16) bool { return true }))
	st := a.v.Stats()
	if most := a.v.cfg.MaxPeers; st.Learned > most {
		a.t.Fatalf("%d learned of %d", st.Learned, most)
	}
	sum := 0
	for _, n := range a.v.shares.of {
		sum += n
	}
	check.Need(a.t, sum == st.Learned, "%d learned, %d by prefix", st.Learned, sum)
}

const tenMinutes = 60 // steps

// One prefix does its worst for ten minutes: it was there before, keeps all the peers that it can
// alive, and tries more and more. Another's 200 peers come one after the other, and some say little.
func TestWorstPeers(t *testing.T) {
	for name, at := range map[string]func(prefix, i int) netip.AddrPort{"IPv6": six, "IPv4": four} {
		t.Run(name, func(t *testing.T) {
			cfg := &Config{} // 1024 peers
			mine, theirs := 200, 1100
			if name == "IPv4" {
				cfg.MaxPeers, mine, theirs = 240, 60, 254
			}
			run := func(bad bool) (heard int) {
				a := newArena(t, cfg)
				attack := func(step int) {
					for i := range theirs {
						if bad {
							a.from(at(1, (i+step*7)%theirs), 4)
						}
					}
				}
				attack(0)
				attack(0)
				attack(0)
				for step := range tenMinutes {
					for i := range min(mine, 10*(step+1)) {
						if (i+step)%3 != 0 && i%2 == 0 {
							continue // has nothing to say
						}
						if a.from(at(2, i), 1) {
							heard++
						}
						if i%16 == 0 && bad {
							a.from(at(1, (i*step)%theirs), fewPackets)
						}
					}
					attack(step)
					a.step()
				}
				return heard
			}
			worst.Kept(t, "learned peers", run(false), run(true))
		})
	}
}

// Peers that are in use stay, whoever comes with however many addresses, and those that have said one
// thing each do not keep newcomers out.
func TestPeersOfManyPrefixes(t *testing.T) {
	a := newArena(t, &Config{MaxPeers: 64})
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 16 {
		a.from(four(9, i), fewPackets)
	}
	listed := addPeer(t, a.v, four(8, 1))
	came := 0
	for step := range tenMinutes {
		for range 200 {
			a.from(four(100+r.IntN(1<<18), r.IntN(250)), 1)
		}
		a.step()
		if a.from(four(10, step), 1) {
			came++
		}
		for i := range 16 {
			check.Need(t, a.from(four(9, i), 0), "step %d: peer %d has given way", step, i)
		}
	}
	check.True(t, came >= tenMinutes*9/10, "%d of %d newcomers were learned", came, tenMinutes)
	check.True(t, a.v.PeerName(listed) != "", "a listed peer has given way")
}

// Without a Retire no more give way than may be on their way out.
func TestYieldingIsBounded(t *testing.T) {
	a := newArena(t, &Config{MaxPeers: 400})
	for i := range 5000 {
		a.from(six(1, i), 1)
	}
	learned := 0
	for i := range 300 {
		if a.from(six(2, i), 1) {
			learned++
		}
	}
	if learned != a.v.maxEvicted() {
		t.Errorf("%d learned, %d may give way", learned, a.v.maxEvicted())
	}
	gone := a.v.Control().Retire(func(uint16) bool { return true })
	check.Equal(t, "retired", len(gone), learned)
	for _, n := range gone {
		check.True(t, a.v.PeerName(n) != "", "free before Free")
	}
	a.v.Control().Free(gone)
	a.step()
}

// A peer has it said of the way to itself that ever less passes, and a router that it is not
// reached: frames for others are as long as they were, and their senders are told of their own.
func TestWorstPathMTU(t *testing.T) {
	run := func(bad bool) (sent int) {
		u := fake4()
		v := newVTEP(t, nil, u)
		flood(t, v, vni, at(1), at(2))
		long := frame.Make(append(inner(1), make([]byte, 1400)...))
		w := v.Writer(0)
		for n := range 600 {
			for k := 0; bad && k < 10; k++ {
				u.path(endpoint(t, at(1)), 1400-n, vx(vni, nil))
				u.path(endpoint(t, at(100+k)), 576, nil)
			}
			out := []frame.Out{{F: &long, Tag: vni}}
			check.OK(t, w.Write(out))
			for _, d := range u.sent {
				if slices.Contains(d.to, at(2)) {
					sent++
				}
			}
			u.sent = nil
		}
		return sent
	}
	worst.Kept(t, "path MTUs of peers", run(false), run(true))
}

// Likewise of reports that it is not reached: senders are told of their own peers.
func TestWorstReports(t *testing.T) {
	run := func(bad bool) (n int) {
		synctest.Test(t, func(t *testing.T) {
			u := raw4()
			v := ipipVTEP(t, Config{}, u)
			one, two := addPeer(t, v, host(at(1))), addPeer(t, v, host(at(2)))
			quoted := bare4(0, 9, true).data
			for range 600 {
				for k := 0; bad && k < 100; k++ {
					u.unreachable(endpoint(t, host(at(1))), quoted)
					u.unreachable(endpoint(t, host(at(3+k))), quoted)
				}
				u.unreachable(endpoint(t, host(at(2))), quoted)
				check.Need(t, told(v, one) <= maxReports, "told more often than is kept")
				n += told(v, two)
				time.Sleep(time.Second)
			}
		})
		return n
	}
	worst.Kept(t, "unreachable reports of a peer", run(false), run(true))
}
