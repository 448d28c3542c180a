package datapath

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A flow is carried only while all three epochs are those of its slot; and a dead one not even if all are zero.
func TestEpochs(t *testing.T) {
	d := load(t)
	k := OutKey{Ifindex: 1, Dst: macFar, Src: macNear}
	b := shape{dst: macFar, src: macNear}.bytes()
	const src, dst, slot = 77, Epochs - 1, 5
	s := d.Slot(slot)
	check.OK(t, d.Put(k, &Flow{Slot: slot, SrcEpoch: src, DstEpoch: dst, Oif: 1, How: Egress, Max: 1500}))
	want := func(what string, c Cause) {
		t.Helper()
		check.Equal(t, what, d.why(t, PortIn, b, Meta{}), c)
	}
	now := func() Validity { return Validity{d.Epoch(Global), d.Epoch(src), d.Epoch(dst)} }
	want("never validated", Stale)
	check.Equal(t, "first epoch", now(), Validity{1, 0, 0})
	for range 3 {
		for _, e := range []uint32{Global, src, dst} {
			s.Validate(now())
			want("valid", NumCauses)
			d.Bump(src + 1) // of other MACs
			was := now()
			check.Equal(t, "Bump", d.Bump(e), d.Epoch(e))
			check.True(t, now() != was, "epoch %d stays", e)
			want("bumped", Stale)
		}
		s.Validate(now())
		s.Kill()
		check.Equal(t, "killed", s.Validity().Global, uint64(0))
		want("killed", Stale)
	}
	s.Validate(now())
	want("valid again", NumCauses)
	packets, _, _ := s.Counters()
	check.Equal(t, "packets", packets, 10)
	s.Clear()
	packets, bytes, last := s.Counters()
	check.True(t, packets == 0 && bytes == 0 && last == 0, "after Clear: %d, %d, %v", packets, bytes, last)
	want("cleared", Stale)
}

func TestTables(t *testing.T) {
	d := loadFor(t, 8)
	check.Equal(t, "slots", d.Slots(), 16)
	f := &Flow{Oif: 1, How: Egress, Max: 1500, Outer: Outer{Local: locals[0], Port: 4789}}
	for _, key := range []func(i int) Key{
		func(i int) Key { return OutKey{Ifindex: 1, Dst: macOf(i), Src: macNear} },
		func(i int) Key { return InKey{Peer: peerOf(1, i).As16(), VNI: vni, Dst: macOf(i), Src: macNear} },
	} {
		for i := range 8 {
			check.OK(t, d.Put(key(i), f))
		}
		check.ErrorIs(t, "again", d.Put(key(3), f), ErrExist)
		check.ErrorIs(t, "one more", d.Put(key(8), f), ErrFull)
		check.OK(t, d.Delete(key(20)))
		check.ErrorIs(t, "one more", d.Put(key(8), f), ErrFull)
		check.OK(t, d.Delete(key(7)))
		check.OK(t, d.Delete(key(7)))
		check.OK(t, d.Put(key(8), f))
	}
	m := check.Must(d.Misses())(t)
	for c := range m.All() {
		t.Errorf("misses of cause %v without a frame", c)
	}
}

func TestFlowErrors(t *testing.T) {
	d := loadFor(t, 8)
	good := func() *Flow {
		return &Flow{Oif: 1, How: Neigh, Max: 1500, Outer: Outer{Local: locals[0], Remote: peerOf(0, 1), Port: 4789, SrcPorts: srcPorts, VNI: vni}}
	}
	check.OK(t, d.Put(OutKey{}, good()))
	for _, c := range []struct {
		field  string
		change func(f *Flow)
	}{
		{"Slot is 16; must be less than 16", func(f *Flow) { f.Slot = 16 }},
		{"SrcEpoch is 16384; must be less than 16384", func(f *Flow) { f.SrcEpoch = Epochs }},
		{"DstEpoch is", func(f *Flow) { f.DstEpoch = Epochs }},
		{"Oif is 0; must be the index of a device", func(f *Flow) { f.Oif = 0 }},
		{"How is none; must be", func(f *Flow) { f.How = 0 }},
		{"How is How(9)", func(f *Flow) { f.How = 9 }},
		{"Tag is 5; must be 0 to 4094, and 0 with Neigh", func(f *Flow) { f.Tag = 5 }},
		{"Tag is 4095", func(f *Flow) { f.How, f.Tag = Egress, 4095 }},
		{"Outer.Local is", func(f *Flow) { f.Outer.Local = locals[1].WithZone("x") }},
		{"Outer.Local is fe80::1", func(f *Flow) { f.Outer.Local = netip.MustParseAddr("fe80::1") }},
		{"Outer.Remote is 224.0.0.1", func(f *Flow) { f.Outer.Remote = netip.MustParseAddr("224.0.0.1") }},
		{"Outer.Port is 0", func(f *Flow) { f.Outer.Port = 0 }},
		{"Outer.Remote is 2001:db8::101", func(f *Flow) { f.Outer.Remote = peerOf(1, 1) }},
		{"Outer.VNI is 16777216; must be at most 16777215", func(f *Flow) { f.Outer.VNI = 1 << 24 }},
		{"Outer.TOS is 1", func(f *Flow) { f.Outer.TOS = 1 }},
		{"Outer.DF is 3", func(f *Flow) { f.Outer.DF = 3 }},
		{"Outer.ECN is 3", func(f *Flow) { f.Outer.ECN = 3 }},
		{"Outer.SrcPorts is", func(f *Flow) { f.Outer.SrcPorts[15] = 0 }},
	} {
		f := good()
		c.change(f)
		err := d.Put(OutKey{Tag: 1}, f)
		check.ErrorHas(t, err, "datapath: Flow: "+c.field, "; must be")
	}
	check.ErrorHas(t, d.Put(InKey{}, good()), "datapath: Flow: How is neigh")
	_, err := d.Attach(1, TunnelIn)
	check.ErrorHas(t, err, "datapath: device lo has no MAC; it must be")
	_, err = d.Attach(1<<30, PortIn)
	check.ErrorHas(t, err, "datapath: device 1073741824: ")
	check.True(t, err != nil && !strings.Contains(err.Error(), "\n") && !errors.Is(err, errors.ErrUnsupported), "%v", err)
}

// While entries and epochs change, with the race detector on: nothing is carried by an entry after its grace period.
func TestChurn(t *testing.T) {
	d := load(t)
	b := shape{dst: macFar, src: macNear}.bytes()
	k := OutKey{Ifindex: 1, Dst: macFar, Src: macNear}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, _, _, err := d.Run(PortIn, b, Meta{}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range uint32(100) {
		slot := i % 8
		s := d.Slot(slot)
		s.Clear()
		s.Validate(Validity{d.Epoch(Global), d.Epoch(1), d.Epoch(2)})
		check.OK(t, d.Put(k, &Flow{Slot: slot, SrcEpoch: 1, DstEpoch: 2, Oif: 1, How: Egress, Max: 1500}))
		for n, _, _ := s.Counters(); n == 0; n, _, _ = s.Counters() {
		}
		switch i % 3 {
		case 0:
			s.Kill()
		case 1:
			d.Bump(1)
		case 2:
			check.OK(t, d.Delete(k))
		}
		check.OK(t, Grace())
		was, _, _ := s.Counters()
		_, _, _, err := d.Run(PortIn, b, Meta{})
		check.OK(t, err)
		now, _, _ := s.Counters()
		check.Equal(t, "packets after the grace period", now, was)
		check.OK(t, d.Delete(k))
	}
	close(stop)
	wg.Wait()
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for c := range NumCauses {
		check.True(t, c.String() != "" && !seen[c.String()], "cause %d: %q", c, c)
		seen[c.String()] = true
	}
	check.Equal(t, "no cause", NumCauses.String(), "unknown")
	m := Misses{TooBig: 3}
	for c, n := range m.All() {
		check.True(t, c == TooBig && n == 3, "%v %d", c, n)
	}
	check.Equal(t, "How", Peer.String(), "peer")
}
