package vectors

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

var replicationRows = []row{
	{id: "5.replication", name: "ten peers", wire: func(l *lab) {
		l.start(floods{2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
		h, fs := l.host(), l.fars(2, 11)
		var want [][]byte
		for i := range 5 {
			x := eth(frame.Broadcast, h.MAC, fmt.Sprint(i))
			h.Send(x)
			want = append(want, vx(vni, x))
		}
		for _, f := range fs {
			f.want(want...)
		}
		for _, p := range l.VTEP.Stats().Peers {
			l.check(p.Tx.Frames == 5, "%v: %d sent", p.Addr, p.Tx.Frames)
		}
	}},
	{id: "5.replication", name: "of that VNI", wire: func(l *lab) {
		l.start(floods{2, 3})
		l.join(200)
		l.must(l.VTEP.SetFlood(200, l.at(3), l.at(4)))
		h, o, fs := l.host(), l.Host(200), l.fars(2, 4)
		x, y := eth(frame.Broadcast, h.MAC, ""), eth(frame.Broadcast, o.MAC, "")
		h.Send(x)
		o.Send(y)
		fs[0].want(vx(100, x))
		fs[1].want(vx(100, x), vx(200, y))
		fs[2].want(vx(200, y))
	}},
	{id: "5.replication", name: "a batch at once", wire: func(l *lab) {
		h, f, g := l.trio(floods{2, 3})
		var want [][]byte
		for i := range 100 {
			x := eth(frame.Broadcast, h.MAC, fmt.Sprint(i))
			l.must(h.Pipe.Send(x))
			want = append(want, vx(vni, x))
		}
		f.want(want...)
		g.want(want...)
	}},
	{id: "5.replication", name: "nobody listed", wire: func(l *lab) {
		l.start()
		h, o := l.host(), l.host()
		l.passes(h, eth(frame.Broadcast, h.MAC, ""), o)
		l.drops(one("no-peer"))
	}},
	{id: "5.replication-unique", name: "repetitions", wire: func(l *lab) {
		h, f, g := l.trio(floods{2, 3, 2, 2, 3})
		l.passes(h, eth(frame.Broadcast, h.MAC, ""), f, g)
	}},
	{id: "5.replication-unique", name: "with and without the port", wire: func(l *lab) {
		l.start()
		l.must(l.VTEP.SetFlood(vni, netip.AddrPortFrom(l.addr(2), 0), l.at(2)))
		h, f := l.host(), l.far(2)
		l.passes(h, eth(frame.Broadcast, h.MAC, ""), f)
	}},
	{id: "5.replication-unique", name: "IPv4 in IPv6 form", only: "IPv4", wire: func(l *lab) {
		l.start()
		mapped := netip.AddrPortFrom(netip.AddrFrom16(l.addr(2).As16()), encap.VXLANPort)
		l.must(l.VTEP.SetFlood(vni, l.at(2), mapped))
		h, f := l.host(), l.far(2)
		l.passes(h, eth(frame.Broadcast, h.MAC, ""), f)
	}},
	{id: "5.replication-own", name: "in the middle", wire: func(l *lab) {
		h, f, g := l.trio(floods{2, 1, 3})
		l.passes(h, eth(frame.Broadcast, h.MAC, ""), f, g)
		l.clean()
	}},
	{id: "5.replication-own", name: "alone", wire: func(l *lab) {
		l.start(floods{1})
		h := l.host()
		h.Send(eth(frame.Broadcast, h.MAC, ""))
		l.dropped("no-peer")
	}},
	unreachableRow("cut link", func(l *lab, f *far) { l.Net.Partition(l.addr(1), l.addr(3)) }),
	unreachableRow("nobody listens", func(l *lab, f *far) { f.u.Close() }),
	unreachableRow("path too narrow", func(l *lab, f *far) { l.Net.SetLink(l.addr(1), l.addr(3), memory.Link{MTU: 80}) }),
	unreachableRow("slow", func(l *lab, f *far) { l.Net.SetLink(l.addr(1), l.addr(3), memory.Link{Delay: time.Hour, Cut: true}) }),
	{id: "5.replication-order", name: "one in the middle goes", wire: func(l *lab) {
		l.start(floods{6, 2, 5, 3, 4})
		h := l.host()
		fs := l.fars(2, 6)
		wantOrder := func(list ...byte) {
			l.T.Helper()
			var want []netip.AddrPort
			for _, i := range list {
				want = append(want, l.at(i))
			}
			got := l.VTEP.Flood(vni)
			l.check(slices.Equal(got, want), "flood list %v, want %v", got, want)
		}
		wantOrder(6, 2, 5, 3, 4)
		l.flood(6, 2, 3, 4)
		wantOrder(6, 2, 3, 4)
		l.flood(2, 3, 4)
		wantOrder(2, 3, 4)
		x := eth(frame.Broadcast, h.MAC, "")
		h.Send(x)
		for i, f := range fs {
			if i < 3 {
				f.want(vx(vni, x))
			} else {
				f.want()
			}
		}
	}},
	{id: "5.replication-live", name: "peers come and go", wire: func(l *lab) {
		l.start()
		h, fs := l.host(), l.fars(2, 5)
		lists := [][]byte{{2, 3}, {2, 3, 4}, {2, 4}, {2, 4, 5}, {2}, {5, 4, 3, 2}}
		l.flood(lists[0]...)
		var now atomic.Int64
		var from []int64 // frame i was sent while list from[i] held
		stop := l.traffic(h, func() { from = append(from, now.Load()) })
		time.Sleep(500 * time.Microsecond) // between two frames
		for i := range lists {
			time.Sleep(50 * time.Millisecond)
			l.flood(lists[i]...)
			now.Store(int64(i))
		}
		time.Sleep(50 * time.Millisecond)
		n := stop()
		for k, f := range fs {
			got := f.counted()
			for i := range n {
				want := 0
				if slices.Contains(lists[from[i]], byte(k+2)) {
					want = 1
				}
				l.check(got[i] == want, "peer %d got %d of frame %d, want %d", k+2, got[i], i, want)
			}
		}
		l.check(n >= 200, "%d frames", n)
	}},
}

// traffic has a host flood numbered frames, a millisecond apart, until stop, which returns how
// many.
func (l *lab) traffic(h *mem.Host, sent func()) (stop func() int) {
	var stopped atomic.Bool
	ended := make(chan int)
	go func() {
		i := 0
		for ; !stopped.Load(); i++ {
			b := eth(frame.Broadcast, h.MAC, "")
			binary.BigEndian.PutUint32(b[20:], uint32(i))
			err := h.Pipe.Send(b)
			l.check(err == nil, "frame %d: %v", i, err)
			sent()
			time.Sleep(time.Millisecond)
		}
		ended <- i
	}()
	return func() int {
		stopped.Store(true)
		defer l.Settle()
		return <-ended
	}
}

// counted returns how often each numbered frame has arrived.
func (f *far) counted() map[int]int {
	got := map[int]int{}
	for _, b := range f.got() {
		got[int(binary.BigEndian.Uint32(b[28:]))]++
	}
	return got
}

// unreachableRow lists three peers, of which the one in the middle cannot be reached.
func unreachableRow(name string, breaks func(l *lab, f *far)) row {
	return row{id: "5.replication-unreachable", name: name, wire: func(l *lab) {
		l.start(floods{2, 3, 4})
		h, fs := l.host(), l.fars(2, 4)
		breaks(l, fs[1])
		var want [][]byte
		for i := range 20 {
			x := eth(frame.Broadcast, h.MAC, fmt.Sprint(i))
			h.Send(x)
			want = append(want, vx(vni, x))
		}
		fs[0].want(want...)
		fs[1].want()
		fs[2].want(want...)
		l.drops(nil)
	}}
}
