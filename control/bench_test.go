package control_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// lease is the subnet of a node, behind its VTEP.
func lease(n int) control.Row {
	a, b, c := byte(n>>16), byte(n>>8), byte(n)
	return control.Prefix{VRF: "red", Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20 + a, b, c, 0}), 24), Via: control.Via{
		VNI: l3vni, MAC: frame.MACFrom(0x0210_0000_0000 + uint64(n)), VTEP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16 + a, b, c}), 0),
	}}
}

// hosts are n rows of a MAC and an IPv4 address, behind 200 VTEPs.
func hosts(n int) []control.Row {
	list := make([]control.Row, n)
	for i := range list {
		ip := binary.BigEndian.AppendUint32(nil, 0xc0a80000+uint32(i))
		list[i] = control.MAC{VNI: red, MAC: frame.MACFrom(0x0220_0000_0000 + uint64(i)), IP: netip.AddrFrom4([4]byte(ip)), VTEP: at(byte(2 + i%200))}
	}
	return list
}

// BenchmarkProgram adds a row with a new VTEP beside others, and deletes it: a lease or a host.
func BenchmarkProgram(b *testing.B) {
	for _, n := range []int{100, 20_000} {
		l := newLeaf(b, control.Config{})
		var leases []control.Row
		for i := range n {
			leases = append(leases, lease(1+i))
		}
		l.add("leases", leases...)
		l.add("leases", hosts(n)...)
		for name, r := range map[string]control.Row{
			"lease": lease(n + 1),
			"host":  control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(2)},
		} {
			b.Run(fmt.Sprintf("%s/beside=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					l.add("leases", r)
					l.del("leases", r)
				}
			})
		}
	}
}

// BenchmarkSnapshot programs 100,000 rows at once: new ones, the same again, others in their places, and none.
func BenchmarkSnapshot(b *testing.B) {
	rows := hosts(100_000)
	moved := make([]control.Row, len(rows))
	for i, r := range rows {
		m := r.(control.MAC)
		m.VTEP = at(byte(2 + (i+1)%200))
		moved[i] = m
	}
	l := newLeaf(b, control.Config{})
	for b.Loop() {
		for _, u := range [][]control.Row{rows, rows, moved, nil} {
			l.program("evpn", control.Update{Snapshot: true, Add: u})
		}
	}
}

// BenchmarkLedger sets and removes 100,000 rows in batches as an import of routes does, with somebody who watches.
func BenchmarkLedger(b *testing.B) {
	const batch = 2048
	rows := hosts(100_000)
	l := newLeaf(b, control.Config{})
	defer l.Watch(func(string, []control.Row, []control.Row) {})()
	var g control.Ledger[int]
	for b.Loop() {
		for _, there := range []bool{true, false} {
			for i, r := range rows {
				if there {
					g.Set(i, r)
				} else {
					g.Set(i)
				}
				if i%batch == batch-1 || i == len(rows)-1 {
					if err := g.Flush("evpn", l); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N*len(rows)), "ns/row")
}

// A row of a MAC and an address takes at most 400 bytes, of which the FDB and the neighbour table have 230. A lease
// takes more, since each has its own VTEP.
func TestMemory(t *testing.T) {
	const n = 100_000
	rows := hosts(n)
	l := newLeaf(t, control.Config{})
	var g control.Ledger[int]
	for _, c := range []struct {
		what string
		most uint64
		n    int
		f    func()
	}{
		{"row", 400, n, func() { l.add("evpn", rows...) }},
		{"lease", 1900, n / 10, func() {
			for i := range n / 10 {
				l.add("flannel", lease(i))
			}
		}},
		{"row of a Ledger", 100, n, func() {
			for i, r := range rows {
				g.Set(i, r)
			}
			if err := g.Flush("bgp", sink{}); err != nil {
				t.Error(err)
			}
		}},
	} {
		before := heap()
		c.f()
		each := (heap() - before) / uint64(c.n)
		if t.Logf("%d bytes a %s", each, c.what); each > c.most {
			t.Errorf("want at most %d", c.most)
		}
	}
	runtime.KeepAlive(rows)
	runtime.KeepAlive(g)
}

// A sink is a Programmer without tables.
type sink struct{}

func (sink) Program(string, control.Update) error { return nil }

// heap returns the bytes of objects in use.
func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
