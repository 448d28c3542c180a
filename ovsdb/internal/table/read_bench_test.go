package table

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// many returns a database with n MACs, each with an address, behind 100 VTEPs.
func many(t testing.TB, n int) *Database {
	d := new(Database)
	fill(t, d, base)
	for i := range 100 {
		fill(t, d, fmt.Sprintf(`Physical_Locator v%d {"dst_ip": "198.51.100.%d", "encapsulation_type": "vxlan_over_ipv4", "tunnel_key": ["set", []]}`, i, i))
	}
	for i := range n {
		d.Set(UcastRemote, fmt.Sprintf("%08x", uint32(i)*2654435761), Row{"MAC": frame.MACFrom(2<<40 | uint64(i)).String(), "ipaddr": fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255),
			"logical_switch": []any{"uuid", "a"}, "locator": []any{"uuid", fmt.Sprint("v", i%100)}})
	}
	return d
}

// A row costs two allocations, its own and that of its parsed MAC, however many there are.
func TestReadAllocs(t *testing.T) {
	for _, n := range []int{10_000, 100_000} {
		d := many(t, n)
		if rows := len(d.Read(us).Rows); rows != n+100 {
			t.Fatalf("%d rows of %d MACs", rows, n)
		}
		if allocs := testing.AllocsPerRun(1, func() { d.Read(us) }); allocs > float64(2*n+1000) {
			t.Errorf("%d MACs: %.0f allocations, %.1f a row", n, allocs, allocs/float64(n))
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := many(b, n)
			b.ReportAllocs()
			for b.Loop() {
				d.Read(us)
			}
		})
	}
}
