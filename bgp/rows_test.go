package bgp

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A refuser passes Updates on, but for those that fail.
type refuser struct {
	control.Programmer
	err error
	got []string
}

func (r *refuser) Program(owner string, u control.Update) error {
	r.got = append(r.got, fmt.Sprint("snapshot ", u.Snapshot, ", add ", len(u.Add), ", del ", len(u.Del)))
	if r.err != nil {
		return r.err
	}
	return r.Programmer.Program(owner, u)
}

// What has changed is passed, and after an error everything.
func TestFlush(t *testing.T) {
	x, m := newTable(settings()), newModel()
	x.configure(settings(), gateway)
	to := &refuser{Programmer: m}
	flush := func(want ...string) {
		t.Helper()
		to.got = nil
		for more := true; more; {
			var err error
			more, err = x.flush("bgp", to)
			check.ErrorIs(t, "flush", err, to.err)
		}
		check.Slice(t, "updates", to.got, want)
	}
	flush("snapshot false, add 2, del 0")
	two := []string{"10.0.0.2", "10.0.0.3"}
	for i, hop := range two {
		x.learned(pathTo("10.65.2.0/26", hop, 0, hop))
		x.learned(pathTo(fmt.Sprintf("10.65.%d.0/26", 3+i), hop, 0, hop))
	}
	flush("snapshot false, add 4, del 0")
	x.learned(pathTo("10.65.2.0/26", "10.0.0.3", 0, "10.0.0.4"))
	flush("snapshot false, add 1, del 1")
	x.learned(pathTo("10.65.2.0/26", "10.0.0.3", 0, "10.0.0.4"))
	flush()
	to.err = errors.New("closed")
	x.withdrawn(pathTo("10.65.2.0/26", "10.0.0.3", 0, "10.0.0.4"))
	flush("snapshot false, add 0, del 1")
	to.err = nil
	flush("snapshot true, add 5, del 0")
	flush()
	check.Equal(t, "rows", len(m.Rows("bgp")), 5)
	x.down(addr("10.0.0.2"))
	x.down(addr("10.0.0.3"))
	flush("snapshot false, add 0, del 3")
	check.Equal(t, "prefixes known", len(x.prefixes), 2) // ours
}

// A route of many takes no more than this, with its row.
func TestTableMemory(t *testing.T) {
	const n = 100_000
	list := make([]netip.Prefix, n)
	for i := range list {
		list[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 65 + byte(i>>16)*2, byte(i >> 8), byte(i)}), 32)
	}
	x := newTable(settings())
	x.configure(settings(), gateway)
	before := heap()
	for _, p := range list {
		e := pathTo("10.65.2.0/26", "10.0.0.2", 0, "10.0.0.2")
		e.Prefix = p
		x.learned(e)
	}
	for more := true; more; {
		more, _ = x.flush("bgp", &updates{})
	}
	each := (heap() - before) / n
	if t.Logf("%d bytes a route", each); each > 160 {
		t.Errorf("%d bytes a route, want at most 160", each)
	}
	check.Equal(t, "routes", x.n, n)
	runtime.KeepAlive(list)
}

func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
