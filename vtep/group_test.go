package vtep

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// groupFake is a fake that can be in groups.
type groupFake struct {
	*fake
	log  []string
	fail netip.Addr // cannot be joined
}

func (u *groupFake) Join(g netip.Addr) error {
	if g == u.fail {
		return errors.New("no room")
	}
	u.log = append(u.log, "join "+g.String())
	return nil
}

func (u *groupFake) Leave(g netip.Addr) error {
	u.log = append(u.log, "leave "+g.String())
	return nil
}

// did fails the test unless exactly this was joined and left since the last time.
func (u *groupFake) did(t *testing.T, want ...string) {
	t.Helper()
	check.True(t, slices.Equal(u.log, want), "%q, want %q", u.log, want)
	u.log = nil
}

func groupAt(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{239, 0, 0, byte(i)}), 0)
}

// The underlay is in a group while an open VNI has it in its list, and asked once.
func TestGroupMembership(t *testing.T) {
	u := &groupFake{fake: fake4()}
	v := newVTEP(t, nil, u)
	flood(t, v, 1, groupAt(1), at(1))
	check.OK(t, v.Control().Open(1))
	u.did(t, "join 239.0.0.1")
	check.OK(t, v.Control().Open(2))
	flood(t, v, 2, groupAt(2), groupAt(1), groupAt(2))
	u.did(t, "join 239.0.0.2")
	flood(t, v, 1, groupAt(3))
	u.did(t, "join 239.0.0.3")
	flood(t, v, 2, at(5), groupAt(2))
	u.did(t, "leave 239.0.0.1")
	v.Control().Shut(2)
	v.Control().Shut(2)
	u.did(t, "leave 239.0.0.2")
	check.OK(t, v.Control().Open(2))
	u.did(t, "join 239.0.0.2")
	check.OK(t, v.SetFlood(1))
	check.OK(t, v.SetFlood(2))
	u.did(t, "leave 239.0.0.3", "leave 239.0.0.2")

	// Groups that nobody lists are gone at the next Retire, and were never learned.
	check.Equal(t, "retired", len(v.Control().Retire(func(uint16) bool { return true })), 3)
	if st := v.Stats(); st.Learned != 2 { // the two peers
		t.Errorf("%+v", st)
	}
	flood(t, v, 2, groupAt(2))
	u.did(t, "join 239.0.0.2")
}

// What cannot be joined changes nothing.
func TestGroupJoinFails(t *testing.T) {
	u := &groupFake{fake: fake4(), fail: groupAt(9).Addr()}
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(1))
	flood(t, v, 1, groupAt(1))
	u.did(t, "join 239.0.0.1")
	check.ErrorHas(t, v.SetFlood(1, groupAt(1), groupAt(2), groupAt(9)), "vtep: group 239.0.0.9: no room")
	u.did(t, "join 239.0.0.2", "leave 239.0.0.2")
	if got := v.Flood(1); len(got) != 1 || got[0].Addr() != groupAt(1).Addr() {
		t.Errorf("flood list %v", got)
	}
	u.fail = netip.Addr{}
	flood(t, v, 2, groupAt(1), groupAt(9))
	v.Control().Shut(2)
	u.did(t, "join 239.0.0.9", "leave 239.0.0.9")
	u.fail = groupAt(9).Addr()
	check.True(t, v.Control().Open(2) != nil, "open")
	if f := u.hear(t, v.Readers()[0], at(1), vx(2, inner(1)))[0]; f.Drop != frame.UnknownVNI {
		t.Errorf("dropped as %v", f.Drop)
	}
	v.Control().Shut(1)
	u.did(t, "leave 239.0.0.1")
	check.True(t, len(v.Flood(2)) == 2, "the list is gone")
}

func TestGroupErrors(t *testing.T) {
	plain := newVTEP(t, nil, fake4())
	check.OK(t, plain.Control().Open(1))
	if err := plain.SetFlood(1, groupAt(1)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	if err := plain.SetFlood(1, netip.MustParseAddrPort("[ff05::1]:0")); err == nil || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a group of another family: %v", err)
	}
	v := newVTEP(t, nil, &groupFake{fake: fake4()})
	flood(t, v, 1, groupAt(1))
	n := v.Stats().Peers[0].Peer
	if err := v.SetPeers([]PeerConfig{{Address: groupAt(1).Addr()}}); err == nil {
		t.Error("SetPeers of a group")
	}
	check.True(t, check.Err(v.Group(n)) != nil, "a next hop that is a multicast group")
	for _, ttl := range []int{-1, 256} {
		check.ErrorHas(t, check.Err(New(&Config{GroupTTL: ttl}, fake4())), "vtep: Config.GroupTTL: ")
	}
}

// Frames of one flow leave as a run, to a group as to a list, and each copy has its header.
func TestGroupRuns(t *testing.T) {
	for _, typ := range []encap.Type{encap.TypeVXLAN, encap.TypeGPE} {
		u := &groupFake{fake: fake4()}
		v := newVTEP(t, &Config{Type: typ}, u)
		flood(t, v, vni, groupAt(1))
		write := func() []sent {
			t.Helper()
			u.sent = nil
			outs := out(0, 8)
			for i := range outs {
				*outs[i].F = frame.Make(inner(1))
			}
			check.OK(t, v.Writer(0).Write(outs))
			for i := range outs {
				check.Equal(t, "dropped as", outs[i].Drop, 0)
			}
			return u.sent
		}
		if got := write(); len(got) != 1 || len(got[0].payload) != 8*(8+len(inner(1))) || got[0].seg == 0 || got[0].ttl != 1 {
			t.Errorf("%v: %d datagrams", typ, len(got))
		}
		flood(t, v, vni, at(1), groupAt(1), at(2))
		got := write()
		check.Need(t, len(got) == 16, "%v: %d datagrams", typ, len(got))
		for i, d := range got {
			group := i%2 == 1
			bum := typ == encap.TypeGPE && !group // B, draft-ietf-nvo3-vxlan-gpe-13, section 3.1
			if (d.payload[0]&2 != 0) != bum || (d.ttl == 1) != group || (len(d.to) == 1) != group {
				t.Errorf("%v: datagram %d to %v, TTL %d: % x", typ, i, d.to, d.ttl, d.payload[:8])
			}
		}
		var tx []string
		for _, p := range v.Stats().Peers {
			tx = append(tx, fmt.Sprint(p.Addr.Addr(), " ", p.Tx.Frames))
		}
		if want := []string{"239.0.0.1 16", "198.51.0.1 8", "198.51.0.2 8"}; !slices.Equal(tx, want) {
			t.Errorf("%v: sent %v, want %v", typ, tx, want)
		}
		if got := v.Stats().Tx.Frames; got != 8+8*3 {
			t.Errorf("%v: %d copies", typ, got)
		}
	}
}

func TestGroupWriterAllocatesNothing(t *testing.T) {
	for _, typ := range []encap.Type{encap.TypeVXLAN, encap.TypeGPE} {
		u := &groupFake{fake: fake4()}
		u.send = func(ds []frame.Datagram) error { return nil }
		v := newVTEP(t, &Config{Type: typ}, u)
		flood(t, v, vni, groupAt(1), groupAt(2), at(1), at(2))
		w, outs := v.Writer(0), out(0, frame.MaxBatch)
		if k := testing.AllocsPerRun(100, func() {
			for i := range outs {
				outs[i].F.Hash = 0
			}
			check.OK(t, w.Write(outs))
		}); k != 0 {
			t.Errorf("%v: %v allocations", typ, k)
		}
	}
}
