package vtep

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestPathMTU(t *testing.T) {
	a, b := fake4(), fake6()
	v := newVTEP(t, nil, a, b)
	flood(t, v, vni, at(1), at(2), at6(1))
	one, two, six := addPeer(t, v, at(1)), addPeer(t, v, at(2)), addPeer(t, v, at6(1))
	other := check.Must(v.NextHop(at(1), 7))(t)
	group := check.Must(v.Group(one, two))(t)

	want := func(why string, mtus map[uint16]int) {
		t.Helper()
		for n, m := range mtus {
			if got := v.MTU(n); got != m {
				t.Errorf("%s: MTU(%d) = %d, want %d", why, n, got, m)
			}
		}
	}
	const o4, o6 = 36, 56
	want("before", map[uint16]int{0: 1500 - o6, one: 1500 - o4, two: 1500 - o4, six: 1500 - o6, other: 1500 - o4, group: 1500 - o4, 999: 1500 - o6})

	ours, stranger := vx(vni, nil), vx(99, nil)
	for _, c := range []struct {
		why    string
		to     netip.AddrPort
		mtu    int
		quoted []byte
		is     int // underlay MTU of peer one after it
	}{
		{"a VNI that is not ours", at(1), 1400, stranger, 1500},
		{"no VXLAN", at(1), 1400, make([]byte, 8), 1500},
		{"no MTU", at(1), 0, ours, 1500},
		{"another host", at(9), 1400, ours, 1500},
		{"larger than the underlay's", at(1), 9000, ours, 1500},
		{"believed", at(1), 1400, ours, 1400},
		{"whatever port", netip.AddrPortFrom(at(1).Addr(), 9), 1399, ours, 1399},
		{"larger again", at(1), 1450, ours, 1399},
		{"quoted too little to tell", at(1), 1300, ours[:7], 1300},
		{"of a next hop's own VNI", at(1), 1200, vx(7, nil), 1200},
		{"floor", at(1), 68, ours, 576},
	} {
		a.path(endpoint(t, c.to), c.mtu, c.quoted)
		want(c.why, map[uint16]int{one: c.is - o4, other: c.is - o4, two: 1500 - o4, group: c.is - o4, six: 1500 - o6})
	}
	b.path(endpoint(t, at6(1)), 600, nil)
	want("floor of IPv6", map[uint16]int{six: 1280 - o6, 0: 1500 - o6})
	for _, p := range v.Stats().Peers {
		check.True(t, p.MTU == v.MTU(p.Peer), "%v: MTU %d", p.Addr, p.MTU)
	}
}

// The MTUs of the interfaces are followed down and up, for each family, unless they are set. What was learned of paths goes when the
// interface takes more.
func TestFollowMTU(t *testing.T) {
	const o4, o6 = 36, 56
	a, b := fake4(), fake6()
	v := newVTEP(t, nil, a, b)
	one, six := addPeer(t, v, at(1)), addPeer(t, v, at6(1))
	told := 0
	v.Watch(func() { told++ })
	follow := func(mtu4, mtu6 int, changed bool, is4, is6 int) {
		t.Helper()
		a.mtu, b.mtu = mtu4, mtu6
		was := told
		got := check.Must(v.FollowMTU())(t)
		check.True(t, (told > was) == changed, "watchers were told %d times, changed %v", told-was, changed)
		check.Equal(t, "changed", got, changed)
		for n, want := range map[uint16]int{one: is4 - o4, six: is6 - o6, 0: min(mtu4-o4, mtu6-o6)} {
			check.Equal(t, "MTU", v.MTU(n), want)
		}
	}
	follow(1500, 1500, false, 1500, 1500)
	follow(1400, 1500, true, 1400, 1500)
	a.path(endpoint(t, at(1)), 1450, nil)
	follow(1400, 1500, false, 1400, 1500) // longer than the interface takes
	a.path(endpoint(t, at(1)), 1400, nil)
	check.Equal(t, "peers with an MTU of their own", v.varied.Load(), 0)
	a.path(endpoint(t, at(1)), 1300, nil)
	b.path(endpoint(t, at6(1)), 1290, nil)
	follow(1390, 1500, true, 1300, 1290)
	follow(9000, 1500, true, 9000, 1290)
	a.mtu = o4 + 13
	if changed, err := v.FollowMTU(); changed || err == nil || v.MTU(one) != 9000-o4 {
		t.Errorf("%v, %v, MTU %d", changed, err, v.MTU(one))
	}
	set := newVTEP(t, &Config{MTU: 1300}, fake4())
	if changed, err := set.FollowMTU(); changed || err != nil || set.MTU(0) != 1300-o4 {
		t.Errorf("of a configured MTU: %v, %v, %d", changed, err, set.MTU(0))
	}
}

// A flooded frame costs only the peer it is too long for.
func TestPathMTUAndFlood(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	flood(t, v, vni, at(1), at(2), at(3))
	u.path(endpoint(t, at(2)), 700, nil)
	f := frame.Make(append(inner(1), make([]byte, 700)...))
	w := v.Writer(0)
	outs := []frame.Out{{F: &f, Tag: vni}}
	check.OK(t, w.Write(outs))
	if len(u.sent) != 1 || len(u.sent[0].to) != 2 || u.sent[0].to[1] != at(3) || outs[0].Drop != 0 {
		t.Errorf("%+v %v", u.sent, outs[0].Drop)
	}
	if st := v.Stats(); st.Lost[frame.TooBig] != 1 || st.Tx.Frames != 2 {
		t.Errorf("%+v", st)
	}
	flood(t, v, vni, at(2))
	check.OK(t, w.Write(outs))
	check.Equal(t, "to nobody", outs[0].Drop, frame.TooBig)
	small := out(0, 1)
	check.OK(t, w.Write(small))
	check.Equal(t, "a short frame", small[0].Drop, 0)
}

// Over both address families each copy of a flooded frame is judged for itself, superframes by their
// segments, and so are those to multicast groups.
func TestFloodOverBothFamilies(t *testing.T) {
	const fits4, fits6 = 1500 - 36, 1500 - 56
	group4, group6 := netip.MustParseAddrPort("239.1.1.1:4789"), netip.MustParseAddrPort("[ff05::1]:4789")
	for _, c := range []struct {
		name      string
		list      []netip.AddrPort
		some, all int
	}{
		{"nobody", nil, fits6, fits6},
		{"IPv4", []netip.AddrPort{at(1), at(2)}, fits4, fits4},
		{"IPv6", []netip.AddrPort{at6(1), at6(2)}, fits6, fits6},
		{"both", []netip.AddrPort{at(1), at6(1), at(2)}, fits4, fits6},
		{"IPv4 and a group of IPv6", []netip.AddrPort{at(1), group6}, fits4, fits6},
		{"groups", []netip.AddrPort{group4, group6}, fits4, fits6},
	} {
		a, b := &groupFake{fake: fake4()}, &groupFake{fake: fake6()}
		v := newVTEP(t, nil, a, b)
		flood(t, v, vni, c.list...)
		if some, all := v.FloodMTU(vni); some != c.some || all != c.all {
			t.Errorf("%s: FloodMTU = %d, %d, want %d, %d", c.name, some, all, c.some, c.all)
		}
		w := v.Writer(0)
		for _, n := range []int{fits6, fits6 + 1, fits4, fits4 + 1} {
			for _, f := range []frame.Frame{frame.Make(append(inner(1), make([]byte, n-len(inner(1)))...)), super(t, 9000, n-54)} {
				a.sent, b.sent = nil, nil
				lost, sent := v.Stats().Lost[frame.TooBig], v.Stats().Tx.Frames
				outs := []frame.Out{{F: &f, Tag: vni}}
				check.OK(t, w.Write(outs))
				var copies4, copies6 int
				for _, p := range c.list {
					switch {
					case p.Addr().Is6() && n <= fits6:
						copies6++
					case p.Addr().Is4() && n <= fits4:
						copies4++
					}
				}
				got4, got6 := 0, 0
				for _, s := range a.sent {
					got4 += len(s.to)
				}
				for _, s := range b.sent {
					got6 += len(s.to)
				}
				if got4 != copies4 || got6 != copies6 {
					t.Errorf("%s: %d bytes: %d and %d copies, want %d and %d", c.name, n, got4, got6, copies4, copies6)
				}
				wantDrop, wantLost := frame.NotDropped, len(c.list)-copies4-copies6
				switch {
				case c.list == nil:
					wantDrop = frame.NoPeer
				case copies4+copies6 == 0:
					wantDrop, wantLost = frame.TooBig, 0
				}
				st := v.Stats()
				if outs[0].Drop != wantDrop || st.Lost[frame.TooBig]-lost != uint64(wantLost) || st.Tx.Frames-sent != uint64(copies4+copies6) {
					t.Errorf("%s: %d bytes: %v, %d too big, %d sent", c.name, n, outs[0].Drop, st.Lost[frame.TooBig]-lost, st.Tx.Frames-sent)
				}
			}
		}
	}
}

func TestPathMTUAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := fake4()
		v := newVTEP(t, nil, u)
		n := addPeer(t, v, at(1))
		all := func(uint16) bool { return true }
		low := 1400 - encap.TypeVXLAN.Outer(false)
		u.path(endpoint(t, at(1)), 1400, nil)
		time.Sleep(PathMTUAge / 2)
		u.path(endpoint(t, at(1)), 1450, nil) // more than is known: no news
		time.Sleep(PathMTUAge/2 - time.Nanosecond)
		v.Control().Retire(all)
		check.Equal(t, "MTU", v.MTU(n), low)
		u.path(endpoint(t, at(1)), 1400, nil) // said again
		time.Sleep(PathMTUAge - time.Nanosecond)
		v.Control().Retire(all)
		if got := v.MTU(n); got != low {
			t.Errorf("MTU %d, though said again", got)
		}
		time.Sleep(time.Nanosecond)
		v.Control().Retire(all)
		if got := v.MTU(n); got != v.MTU(0) || v.varied.Load() != 0 {
			t.Errorf("MTU %d", got)
		}
	})
}

// A report never waits for whoever changes the tables.
func TestPathMTUDoesNotWait(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	n := addPeer(t, v, at(1))
	v.mu.Lock()
	u.path(endpoint(t, at(1)), 1400, nil)
	v.mu.Unlock()
	check.True(t, v.MTU(n) == v.MTU(0), "changed under a lock")
}
