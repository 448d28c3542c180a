package bgp

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/batch"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// hostsOf returns n paths to addresses of the first pool.
func hostsOf(peer string, n int) (list []engine.Path) {
	for i := range n {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], 10<<24|65<<16|128<<8+uint32(i))
		list = append(list, engine.Path{Source: engine.Source{Peer: addr(peer)}, Prefix: netip.PrefixFrom(netip.AddrFrom4(a), 32), NextHop: addr(peer)})
	}
	return list
}

// updates keeps how many rows each Update has.
type updates []int

func (u *updates) Program(_ string, x control.Update) error {
	*u = append(*u, len(x.Add)+len(x.Del))
	return nil
}

// A flood of routes is written in parts, and what came first goes first.
func TestFlushInParts(t *testing.T) {
	x := newTable(simple())
	x.configure(simple(), gateway)
	var got updates
	more, err := x.flush("bgp", &got) // our block
	check.OK(t, err)
	check.Equal(t, "more", more, false)
	list := hostsOf("10.0.0.2", 3*batch.Most+7)
	for _, p := range list {
		x.learned(p)
	}
	for more = true; more; {
		more, err = x.flush("bgp", &got)
		check.OK(t, err)
		if x.prefixes[list[min((len(got)-1)*batch.Most, len(list))-1].Prefix].rows == (rows{}) {
			t.Errorf("part %d: the last of the first ones has no rows", len(got)-1)
		}
	}
	check.Slice(t, "rows at once", got, updates{1, batch.Most, batch.Most, batch.Most, 7})
}

// While routes are written in parts, what is announced does not wait for the last, and the path to a peer that is dead is not used any
// more when the session is ended.
func TestSpeakerInParts(t *testing.T) {
	n, f, c := newNode(t), newFake(), simple()
	s := check.Must(newSpeaker(n, c, f))(t) // without the goroutine that flushes
	s.networked()
	list := hostsOf("10.0.0.2", 3*batch.Most)
	handler{s}.Learned(list)
	check.Equal(t, "more", s.flush(), true)
	check.Equal(t, "written", len(ways(n)) > 0 && len(ways(n)) <= batch.Most, true)
	check.Equal(t, "announced", len(f.said), 1)

	next := *c
	next.Announce = slices.Concat(c.Announce, prefixes("10.65.2.0/26"))
	check.OK(t, s.Configure(&next))
	s.flush()
	check.Equal(t, "announced", len(f.said), 2)
	for s.flush() {
	}
	check.Equal(t, "written", len(ways(n)), len(list))

	s.dead(addr("10.0.0.2"))
	check.Equal(t, "left", len(ways(n)), 0)
	check.Equal(t, "sessions ended", len(f.reset), 1)
}

// The memory that a prefix with very many paths needs for its rows is not kept for the next one.
func TestManyPaths(t *testing.T) {
	x := newTable(simple())
	x.configure(simple(), gateway)
	for i := range 4 * batch.Most {
		p := hostsOf("10.0.0.2", 1)[0]
		p.ID = uint32(i)
		x.learned(p)
	}
	var got updates
	_, err := x.flush("bgp", &got)
	check.OK(t, err)
	check.Slice(t, "rows", got, updates{2}) // one, and our block
	check.True(t, cap(x.used.paths) <= 2*batch.Most, "room for %d paths is kept", cap(x.used.paths))
}
