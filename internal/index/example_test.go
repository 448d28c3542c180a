package index_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/internal/index"
	"github.com/vxswitch/vxswitch/internal/mix"
)

type vni uint32

func (v vni) Hash(*mix.Key) uint64 { return uint64(v) }

func Example() {
	var m index.Map[vni, string]
	m.Store(100, "red")
	m.Store(200, "blue")
	m.Delete(200)
	name, ok := m.Load(100)
	fmt.Println(name, ok, m.Len())
	// Output: red true 1
}
