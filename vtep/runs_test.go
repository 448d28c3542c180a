package vtep

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// flow returns a frame of n bytes of flow f; its last byte is k.
func flow(f, n, k int) []byte {
	b := append(inner(f)[:14], make([]byte, n-14)...)
	b[len(b)-1] = byte(k)
	return b
}

func TestRuns(t *testing.T) {
	type in struct{ flow, len int }
	for _, c := range []struct {
		name string
		in   []in
		want []int // frames in each datagram
	}{
		{"one", []in{{1, 60}}, []int{1}},
		{"of one size", []in{{1, 60}, {1, 60}, {1, 60}}, []int{3}},
		{"a shorter one is the last", []in{{1, 60}, {1, 60}, {1, 50}, {1, 60}}, []int{3, 1}},
		{"a longer one begins another", []in{{1, 60}, {1, 70}, {1, 70}}, []int{1, 2}},
		{"flows", []in{{1, 60}, {2, 60}, {2, 60}, {1, 60}}, []int{1, 2, 1}},
		{"as many as one call takes", bytesOf(in{1, 60}, 100), []int{64, 36}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := fake4()
			v := newVTEP(t, nil, u)
			n := addPeer(t, v, at(1))
			var outs []frame.Out
			for k, x := range c.in {
				f := frame.Make(flow(x.flow, x.len, k))
				outs = append(outs, frame.Out{F: &f, Peer: n, Tag: vni})
			}
			check.OK(t, v.Writer(0).Write(outs))
			check.Need(t, len(u.sent) == len(c.want), "%d datagrams, want %v", len(u.sent), c.want)
			k := 0
			for i, s := range u.sent {
				var payload []byte
				size := len(vx(vni, outs[k].F.Bytes()))
				for range c.want[i] {
					payload = append(payload, vx(vni, outs[k].F.Bytes())...)
					k++
				}
				if c.want[i] == 1 {
					size = 0
				}
				if !bytes.Equal(s.payload, payload) || s.seg != size {
					t.Errorf("datagram %d: % x in segments of %d, want % x in %d", i, s.payload, s.seg, payload, size)
				}
			}
			if st := v.Stats(); st.Tx.Frames != uint64(len(c.in)) || st.Peers[0].Tx.Frames != uint64(len(c.in)) {
				t.Errorf("%+v", st)
			}
		})
	}
}

func bytesOf[T any](x T, n int) (all []T) {
	for range n {
		all = append(all, x)
	}
	return all
}

// What differs in its outer header, or in whom it is for, is no run.
func TestNoRuns(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Header: Header{TTL: Inherit, DF: DFInherit}}, u)
	flood(t, v, vni, at(1), at(2), at(3))
	one, two := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	var outs []frame.Out
	for _, x := range []struct {
		frame      []byte
		peer, skip uint16
	}{
		{ip4(0, 9, true), one, 0}, {ip4(0, 8, true), one, 0}, {ip4(1, 8, true), one, 0}, {ip4(1, 8, false), one, 0},
		{ip4(1, 8, false), two, 0}, {ip4(1, 8, false), 0, 0}, {ip4(1, 8, false), 0, one}, {ip4(1, 8, false), 0, two},
	} {
		f := frame.Make(x.frame)
		f.Hash = 7
		outs = append(outs, frame.Out{F: &f, Peer: x.peer, Skip: x.skip, Tag: vni})
	}
	check.OK(t, v.Writer(0).Write(outs))
	check.True(t, len(u.sent) == len(outs), "%d datagrams of %d frames", len(u.sent), len(outs))
	// But frames for one list are.
	u.sent = nil
	check.OK(t, v.Writer(0).Write([]frame.Out{outs[5], outs[5]}))
	check.True(t, len(u.sent) == 1 && len(u.sent[0].to) == 3 && u.sent[0].seg != 0, "%+v", u.sent)
}

// A run that is lost is each of its frames.
func TestLostRun(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	n := addPeer(t, v, at(1))
	u.send = func(ds []frame.Datagram) error {
		check.Need(t, len(ds) == 3, "%d datagrams", len(ds))
		ds[1].Lost, ds[1].Drop = 1, frame.PortFull
		return nil
	}
	var outs []frame.Out
	for _, i := range []int{1, 2, 2, 2, 3} {
		f := frame.Make(inner(i))
		outs = append(outs, frame.Out{F: &f, Peer: n, Tag: vni})
	}
	check.OK(t, v.Writer(0).Write(outs))
	for i, want := range []frame.Reason{0, frame.PortFull, frame.PortFull, frame.PortFull, 0} {
		check.True(t, outs[i].Drop == want, "frame %d: %v, want %v", i, outs[i].Drop, want)
	}
	if st := v.Stats(); st.Tx.Frames != 2 {
		t.Errorf("%+v", st.Tx)
	}
}

// Superframes of one flow are one run, up to one whose last segment is short: each segment is as without the others.
func TestSuperframeRuns(t *testing.T) {
	const size = 1000
	for _, c := range []struct {
		name string
		in   []int // payload of each; 0: of another segment size
		want []int // superframes in each datagram
	}{
		{"of full segments", []int{3 * size, 2 * size, 4 * size}, []int{3}},
		{"a short segment is the last", []int{3 * size, 2*size + 7, 4 * size, 2 * size}, []int{2, 2}},
		{"begins with a short segment", []int{2*size + 7, 2 * size}, []int{1, 1}},
		{"other segments", []int{3 * size, 0, 2 * size}, []int{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := fake4()
			v := newVTEP(t, nil, u)
			n := addPeer(t, v, at(1))
			var outs []frame.Out
			var alone [][]byte
			for _, payload := range c.in {
				f := super(t, max(payload, 1), size)
				if payload == 0 {
					f = super(t, 1500, 500)
				}
				check.OK(t, v.Writer(0).Write([]frame.Out{{F: &f, Peer: n, Tag: vni}}))
				outs = append(outs, frame.Out{F: &f, Peer: n, Tag: vni})
			}
			for _, s := range u.sent {
				alone = append(alone, s.payload)
			}
			u.sent = nil
			check.OK(t, v.Writer(0).Write(outs))
			check.Need(t, len(u.sent) == len(c.want), "%d datagrams, want %v", len(u.sent), c.want)
			k := 0
			for i, s := range u.sent {
				want := bytes.Join(alone[k:k+c.want[i]], nil)
				if seg := 8 + 54 + size; c.in[k] != 0 && s.seg != seg || !bytes.Equal(s.payload, want) {
					t.Errorf("datagram %d: %d bytes in segments of %d, want %d of %d", i, len(s.payload), s.seg, len(want), seg)
				}
				k += c.want[i]
			}
		})
	}
}
