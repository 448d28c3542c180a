package bench

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// hostileFills are what an attacker may send, a batch at a time.
func hostileFills(tb testing.TB) map[string]func(*frame.Batch) {
	n := uint32(0)
	anyMAC := func(at int) func(*frame.Batch) { // a MAC that was never seen, at an offset
		packets := make([][]byte, frame.MaxBatch)
		for i := range packets {
			packets[i] = rig.Packet(rig.MAC(1, i), rig.MAC(2, i), 60)
		}
		return func(b *frame.Batch) {
			for _, p := range packets {
				n++
				p[at+1] = 3
				binary.BigEndian.PutUint32(p[at+2:], n)
				b.Borrow(p, 0, len(p))
			}
		}
	}
	same := func(p []byte) func(*frame.Batch) {
		return func(b *frame.Batch) {
			for range frame.MaxBatch {
				b.Borrow(p, 0, len(p))
			}
		}
	}
	return map[string]func(*frame.Batch){
		"sources":      anyMAC(6),
		"destinations": anyMAC(0),
		"broadcast":    same(rig.Packet(frame.Broadcast, rig.MAC(2, 0), 60)),
		"garbage":      same(rig.Packet(rig.MAC(1, 0), frame.Broadcast, 60)),
	}
}

// BenchmarkHostile is the time for a frame of one port while another sends a million hostile
// frames a second, and x-ordinary how many times that with as many ordinary frames: a
// source MAC that was never seen in each, with a table that refuses them and one that
// evicts, of the usual size and of a million; a destination that nobody has; broadcasts; frames that are not valid.
func BenchmarkHostile(b *testing.B) {
	for _, c := range []struct {
		name, what string
		cfg        vswitch.VSIConfig
	}{
		{"sources/refused", "sources", vswitch.VSIConfig{Refuse: true}},
		{"sources/evicting", "sources", vswitch.VSIConfig{}},
		{"sources/evicting-1M", "sources", vswitch.VSIConfig{MaxMACs: 1 << 20}},
		{"destinations", "destinations", vswitch.VSIConfig{}},
		{"broadcast", "broadcast", vswitch.VSIConfig{}},
		{"garbage", "garbage", vswitch.VSIConfig{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newSharedBed(b, &c.cfg)
			r.talk(1000, 60)
			a := newAttacker(b, r, 64*time.Microsecond)
			a.hostile = hostileFills(b)[c.what]
			for full := max(c.cfg.MaxMACs, 8192) - 1000; r.vsi.FDB().Len() < full; { // growing turns some away
				a.attack(1000)
				if c.what != "sources" {
					break
				}
			}
			r.beside(b, a)
		})
	}
}

// However many MACs a port invents, the table holds as many as it may and nothing is
// allocated for them; with eviction those of the other ports stay.
func TestHostileIsBounded(t *testing.T) {
	for _, evict := range []bool{false, true} {
		r := newSharedBed(t, &vswitch.VSIConfig{Refuse: !evict})
		r.talk(1000, 60)
		a := newAttacker(t, r, 0)
		a.hostile = hostileFills(t)["sources"]
		a.attack(20_000 / frame.MaxBatch)
		wantNoMallocs(t, fmt.Sprint("evict ", evict), a.Run)
		if s := r.vsi.FDB().Stats(); s.LearnedEntries > 8192 {
			t.Errorf("evict %v: %+v", evict, s)
		}
		for i := range 1000 {
			if _, ok := r.vsi.FDB().Lookup(rig.MAC(0, i)); !ok {
				t.Fatalf("evict %v: host %d is forgotten", evict, i)
			}
		}
	}
}

// dropCases are frames that are dropped, as they come in at a port or out of the tunnel.
func dropCases(tb testing.TB, r *bed) (port, tunnel map[frame.Reason][]byte) {
	pinned, filtered := rig.MAC(4, 1), rig.MAC(4, 2)
	peer, err := r.v.AddPeer(netip.MustParseAddrPort("192.0.2.3:4789"))
	must(tb, err)
	var behind frame.Dest
	for _, a := range r.vsi.Attachments() {
		if a.Tag() == vni {
			behind = a.Dest(peer)
		}
	}
	must(tb, r.vsi.FDB().Set(pinned, behind, fdb.Static))
	must(tb, r.vsi.FDB().Set(filtered, 0, fdb.Filter))
	local, remote := rig.MAC(0, 1), rig.MAC(1, 1)
	tagged := rig.Packet(remote, local, 64)
	tagged[12], tagged[13] = 0x88, 0xa8
	port = map[frame.Reason][]byte{
		frame.Short:        make([]byte, 13),
		frame.BadSourceMAC: rig.Packet(remote, frame.Broadcast, 64),
		frame.InnerVLAN:    tagged,
		frame.MACPinned:    rig.Packet(remote, pinned, 64),
		frame.Filtered:     rig.Packet(filtered, local, 64),
		frame.ReservedMAC:  rig.Packet(frame.MAC{1, 0x80, 0xc2}, local, 64),
		frame.Reflect:      rig.Packet(rig.MAC(0, 2), local, 64),
		frame.TooBig:       rig.Packet(remote, local, 1500),
	}
	noFlag := rig.Tunnelled(rig.Packet(local, remote, 64), vni)
	noFlag[0] = 0
	ce := rig.Tunnelled(rig.Packet(local, remote, 64), vni)
	tunnel = map[frame.Reason][]byte{
		frame.NoVNIFlag:    noFlag,
		frame.UnknownVNI:   rig.Tunnelled(rig.Packet(local, remote, 64), vni+1),
		frame.BadSourceMAC: rig.Tunnelled(rig.Packet(local, frame.Broadcast, 64), vni),
		frame.SplitHorizon: rig.Tunnelled(rig.Packet(pinned, remote, 64), vni),
		frame.ECN:          ce, // with the outer mark that BenchmarkDrop gives it
	}
	return port, tunnel
}

// limitCases are frames that the limits and policies of newHardened drop.
func limitCases() (port, tunnel map[frame.Reason][]byte) {
	reserved := rig.Tunnelled(rig.Packet(rig.MAC(0, 1), rig.MAC(1, 1), 64), vni)
	reserved[7] = 1
	return map[frame.Reason][]byte{
			frame.Storm:  rig.Packet(frame.Broadcast, rig.MAC(0, 1), 64), // but for a thousand a second
			frame.Locked: rig.Packet(rig.MAC(1, 1), rig.MAC(5, 1), 64),
		}, map[frame.Reason][]byte{
			frame.ReservedBits: reserved,
		}
}

// BenchmarkDrop is a frame that is dropped, and x-forwarded how many times the time of a
// forwarded one that takes.
func BenchmarkDrop(b *testing.B) {
	r := newBed(b)
	r.talk(1000, 64)
	port, tunnel := dropCases(b, r)
	benchmarkDrop(b, r, port, tunnel)
	port, tunnel = limitCases()
	benchmarkDrop(b, newHardened(b, true), port, tunnel)
}

func benchmarkDrop(b *testing.B, r *bed, port, tunnel map[frame.Reason][]byte) {
	cases := func(side string, src *rig.Source, drops map[frame.Reason][]byte) {
		forward := src.Packets
		for reason, p := range drops {
			b.Run(side+"/"+reason.String(), func(b *testing.B) {
				run := func(packets [][]byte, tos uint8) func(int) {
					return func(n int) {
						src.Packets, src.Outer.TOS = packets, tos
						src.Rewind()
						src.Run(n)
					}
				}
				tos := uint8(0)
				if reason == frame.ECN {
					tos = 3
				}
				b.ReportAllocs()
				b.ResetTimer()
				dropped, forwarded := turns(b.N/frame.MaxBatch+1, 500, run([][]byte{p}, tos), run(forward, 0))
				b.ReportMetric(dropped, "ns/op")
				b.ReportMetric(dropped/forwarded, "x-forwarded")
			})
		}
	}
	cases("port", r.port.Source, port)
	cases("tunnel", r.wire.Source, tunnel)
}

// Each frame of BenchmarkDrop is dropped, and for the reason it is there for.
func TestDropCases(t *testing.T) {
	r := newBed(t)
	r.talk(1000, 64)
	port, tunnel := dropCases(t, r)
	testDrops(t, r, port, tunnel)
	r = newHardened(t, true)
	port, tunnel = limitCases()
	r.port.Packets = [][]byte{port[frame.Storm]}
	r.port.Rewind()
	r.port.Run(1000/frame.MaxBatch + 1) // what may pass at once
	testDrops(t, r, port, tunnel)
}

func testDrops(t *testing.T, r *bed, port, tunnel map[frame.Reason][]byte) {
	want := func(side string, src *rig.Source, drops map[frame.Reason][]byte) {
		for reason, p := range drops {
			src.Packets, src.Outer.TOS = [][]byte{p}, 0
			if reason == frame.ECN {
				src.Outer.TOS = 3
			}
			src.Rewind()
			was := r.drops(reason)
			src.Run(1)
			n := r.drops(reason) - was
			if reason == frame.Storm && n < frame.MaxBatch && n > frame.MaxBatch/2 {
				continue // some time has passed
			}
			if n != frame.MaxBatch {
				t.Errorf("%s: %d of %d dropped as %v", side, n, frame.MaxBatch, reason)
			}
		}
	}
	want("port", r.port.Source, port)
	want("tunnel", r.wire.Source, tunnel)
}

// drops returns how many frames were dropped for a reason, coming in or going out.
func (r *bed) drops(reason frame.Reason) (n uint64) {
	for _, p := range r.sw.Stats().Ports {
		n += p.RxDrops[reason] + p.TxDrops[reason]
	}
	return n
}
