package flannel

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"unsafe"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// What a Mapper keeps of a lease, its row and its route included, does not grow unnoticed.
func TestMapperMemory(t *testing.T) {
	if fake.Race || unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("for 64 bits, without the race detector")
	}
	if n := unsafe.Sizeof(mapped{}); n > 288 {
		t.Errorf("a mapped has %d bytes", n)
	}
	const leases, most = 5000, 870
	list := make([]Record, leases)
	for i := range list {
		a := Attrs{Type: "vxlan", IPv4: End{PublicIP: netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), VNI: 1, MAC: mac(100 + i)}}
		list[i] = record(fmt.Sprintf("10.%d.%d.0-24", 100+i>>8, i&255), int64(i), a)
	}
	m := mapper(t, `{"Network": "10.0.0.0/8", "Backend": {"Type": "vxlan"}}`, func(c *MapperConfig) { c.Host = true })
	before := inUse()
	m.Reset(list)
	if err := m.Flush("flannel", programmer(func(string, control.Update) error { return nil })); err != nil {
		t.Fatal(err)
	}
	m.FlushRoutes(func(RouteUpdate) error { return nil })
	got := int(inUse()-before) / leases
	if m.Len() != leases || len(m.Refused()) != 0 || got > most {
		t.Errorf("%d leases of %d bytes, refused %v; want %d of at most %d", m.Len(), got, m.Refused(), leases, most)
	}
	t.Logf("%d bytes", got)
	runtime.KeepAlive(list)
}

// inUse returns how many bytes of the heap are.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
