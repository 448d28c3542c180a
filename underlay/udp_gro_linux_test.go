package underlay

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// watched reads once, or fails.
func watched(t *testing.T, u *UDP, b *frame.Batch) {
	t.Helper()
	w := time.AfterFunc(10*time.Second, u.Pause)
	defer w.Stop()
	must(t, u.Readers()[0].Read(b))
}

// The frames of a run lie where it was received: each can be changed, and grow again by
// what was stripped, without a byte of its neighbours changing.
func TestUDPReceiveRun(t *testing.T) {
	families(t, func(t *testing.T, la, lb string) {
		a, b := listen(t, la, nil), listen(t, lb, nil)
		d, want := runOf(20*100+37, 100, 8, 1, endpoint(t, b.LocalAddr()))
		d.TOS, d.TTL = 0x1b, 17
		send(t, a, d)
		batch := frame.NewBatch(nil)
		watched(t, b, batch)
		if len(batch.Frames) != 21 {
			t.Fatalf("%d frames", len(batch.Frames))
		}
		for i := range batch.Frames {
			f, o := &batch.Frames[i], batch.Outer[i]
			if string(f.Bytes()) != want[i] || f.Drop != 0 {
				t.Errorf("frame %d: %q", i, f.Bytes())
			}
			if o != batch.Outer[0] || o.TOS != 0x1b || o.TTL != 17 || o.If == 0 || o.Dst != endpoint(t, b.LocalAddr()) {
				t.Errorf("frame %d: %+v", i, o)
			}
			head := 0
			if i == 0 {
				head = frame.Headroom
			}
			if f.Headroom() != head {
				t.Errorf("frame %d: headroom %d", i, f.Headroom())
			}
			if i < 20 && f.Extend(1) != nil {
				t.Errorf("frame %d has tailroom", i)
			}
			f.Pull(8)
			if f.Headroom() != head+8 || f.Push(head+9) != nil {
				t.Errorf("frame %d: headroom %d without its header", i, f.Headroom())
			}
			for k := range f.Push(8) {
				f.Bytes()[k] = byte(i)
			}
		}
		for i := range batch.Frames {
			if f := &batch.Frames[i]; !bytes.Equal(f.Bytes(), bytes.Repeat([]byte{byte(i)}, len(want[i]))) {
				t.Errorf("frame %d has been written over", i)
			}
		}
		if st := b.Stats(); st.RxRuns != 1 || st.RxSegments != 21 || st.RxDatagrams != 21 {
			t.Errorf("%+v", st)
		}
	})
}

// message sends one message, cut by the kernel into segments of seg bytes, past the
// limits of a Sender.
func message(t *testing.T, c *net.UDPConn, to *UDP, payload []byte, seg int) {
	t.Helper()
	b := make([]byte, sys.CmsgInt)
	sys.PutCmsgU16(b, unix.SOL_UDP, unix.UDP_SEGMENT, uint16(seg))
	if _, _, err := c.WriteMsgUDPAddrPort(payload, b, to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
}

// Runs are not spread over batches, except those of more frames than a batch has.
func TestUDPReceiveManyRuns(t *testing.T) {
	u := listen(t, "127.0.0.1:0", nil)
	c, _ := plainSocket(t, "udp4", "127.0.0.1:0")
	var want []string
	put := func(n, seg int) {
		p := pattern(n)
		message(t, c, u, p, seg)
		for s := range slices.Chunk(p, seg) {
			want = append(want, string(s))
		}
	}
	for range datagrams.MinWant {
		put(3, 5) // from here on a reader makes room for twice as many
	}
	put(40*7, 7)
	put(40*7, 7)
	put(10*7, 7)
	put(120*5, 5) // two batches of its own, the second with room for what follows
	put(3, 5)
	var in []string
	var sizes []int
	for batch := frame.NewBatch(nil); len(in) < len(want); {
		if len(sizes)%2 == 1 {
			batch = frame.NewBatch(nil) // what is left over does not belong to a batch
		}
		watched(t, u, batch)
		sizes = append(sizes, len(batch.Frames))
		for i := range batch.Frames {
			in = append(in, string(batch.Frames[i].Bytes()))
		}
	}
	if !slices.Equal(in, want) || !slices.Equal(sizes, []int{datagrams.MinWant, 40, 50, 64, 57}) {
		t.Errorf("%d frames of %d in batches of %v", len(in), len(want), sizes)
	}
	if st := u.Stats(); st.RxRuns != 4 || st.RxSegments != 210 || st.RxDatagrams != 211+datagrams.MinWant {
		t.Errorf("%+v", st)
	}
}

func TestUDPReceiveLongSegments(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", &UDPConfig{MaxDatagram: 100})
	eb := endpoint(t, b.LocalAddr())
	fits, _ := runOf(250, 100, 8, 1, eb)
	long, _ := runOf(2*101+100, 101, 8, 1, eb)
	send(t, a, fits, long, to("", 1, eb), to(strings.Repeat("x", 65507), 1, eb), to("end", 1, eb))
	rs := receive(t, b, 3+3+3)
	for i, r := range rs {
		if over := i == 3 || i == 4 || i == 7; (r.Drop == frame.TooBig) != over || over && len(r.Payload) != 100 {
			t.Errorf("datagram %d: %d bytes, %v", i, len(r.Payload), r.Drop)
		}
	}
	if rs[6].Payload != "" || rs[8].Payload != "end" {
		t.Errorf("%q, %q", rs[6].Payload, rs[8].Payload)
	}
	if st := b.Stats(); st.RxTruncated != 3 || st.RxRuns != 2 || st.RxDatagrams != 9 {
		t.Errorf("%+v", st)
	}
}

// Frames that are left over wait for Resume, and are gone with Close.
func TestUDPPauseWithinMessages(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	d, want := runOf(50*10, 10, 8, 1, endpoint(t, b.LocalAddr()))
	send(t, a, d, d, d)
	r, batch := b.Readers()[0], frame.NewBatch(nil)
	watched(t, b, batch)
	b.Pause()
	if err := r.Read(batch); !errors.Is(err, frame.ErrPaused) || len(batch.Frames) != 0 {
		t.Fatalf("%v, %d frames", err, len(batch.Frames))
	}
	b.Resume()
	watched(t, b, batch)
	if len(batch.Frames) != 50 || string(batch.Frames[49].Bytes()) != want[49] {
		t.Errorf("%d frames", len(batch.Frames))
	}
	b.Close()
	if err := r.Read(batch); !errors.Is(err, net.ErrClosed) || len(batch.Frames) != 0 {
		t.Errorf("%v, %d frames", err, len(batch.Frames))
	}
}

func TestUDPReceiveOffload(t *testing.T) {
	a := listen(t, "127.0.0.1:0", nil)
	for off, runs := range map[bool]uint64{true: 0, false: 1} {
		b := listen(t, "127.0.0.1:0", &UDPConfig{NoOffload: off})
		d, want := runOf(50*10, 10, 8, 1, endpoint(t, b.LocalAddr()))
		send(t, a, d)
		if !slices.Equal(payloads(receive(t, b, 50)), want) {
			t.Error("changed")
		}
		if st := b.Stats(); st.RxRuns != runs {
			t.Errorf("no offload %v: %d runs", off, st.RxRuns)
		}
	}
}

// What came is cut at the segment size, whatever that and the message's length are, and
// what did not fit the buffer costs the last datagram only.
func TestUDPSplitMessages(t *testing.T) {
	for _, tc := range []struct {
		n, seg int
		trunc  bool
		want   []int
	}{
		{0, 0, false, []int{0}}, {0, 5, false, []int{0}}, {5, 0, false, []int{5}}, {5, -1, false, []int{5}},
		{5, 5, false, []int{5}}, {5, 9, false, []int{5}}, {10, 5, false, []int{5, 5}}, {11, 5, false, []int{5, 5, 1}},
		{3, 1, false, []int{1, 1, 1}}, {11, 5, true, []int{5, 5, 1}}, {7, 0, true, []int{7}},
		{maxMessage, 40000, true, []int{40000, 25535}},
	} {
		r := newReader(&base{cfg: UDPConfig{MaxDatagram: 65535}}, nil)
		r.Blocks[0], r.N = new(frame.Block), 1
		copy(r.Blocks[0][datagrams.RoomAt(0):], pattern(tc.n))
		m := &r.Msgs[0]
		m.Len = uint32(tc.n)
		if tc.trunc {
			m.Hdr.Flags = unix.MSG_TRUNC
		}
		if tc.seg != 0 {
			m.Hdr.SetControllen(sys.PutCmsgInt(r.ctl[0][:], unix.SOL_UDP, unix.UDP_GRO, tc.seg))
		}
		b := frame.NewBatch(nil)
		r.deliver(b)
		var lens []int
		var all []byte
		for i := range b.Frames {
			f := &b.Frames[i]
			lens, all = append(lens, f.Len()), append(all, f.Bytes()...)
			if cut := tc.trunc && i == len(b.Frames)-1; (f.Drop == frame.TooBig) != cut {
				t.Errorf("%+v: frame %d: %v", tc, i, f.Drop)
			}
		}
		if !slices.Equal(lens, tc.want) || !bytes.Equal(all, pattern(tc.n)) || r.At != 1 {
			t.Errorf("%+v: %v", tc, lens)
		}
	}
}

// Small datagrams come 64 to a call, long messages fewer.
func TestUDPAdapt(t *testing.T) {
	r := newReader(&base{}, nil)
	for _, tc := range []struct{ n, each, want int }{
		{4, 100, 8}, {8, 100, 16}, {16, 1500, 32}, {32, 100, 64}, {64, 1500, 64}, {20, 100, 64},
		{15, 100, 32}, {32, 60000, 16}, {16, 60000, 8}, {8, 65000, 4}, {4, 65000, 4}, {4, 30000, 8},
		{1, 10, 4}, {1, 10, 4},
	} {
		r.N = tc.n
		for i := range tc.n {
			r.Msgs[i].Len = uint32(tc.each)
		}
		if r.Adapt(); r.Want != tc.want {
			t.Fatalf("%d messages of %d bytes: room for %d, want %d", tc.n, tc.each, r.Want, tc.want)
		}
	}
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	var ds []frame.Datagram
	for i := range 64 {
		ds = append(ds, to(fmt.Sprint(i), 1, endpoint(t, b.LocalAddr())))
	}
	for range 4 {
		send(t, a, ds...)
	}
	batch := frame.NewBatch(nil)
	var sizes []int
	for n := 0; n < 256; n += len(batch.Frames) {
		watched(t, b, batch)
		sizes = append(sizes, len(batch.Frames))
	}
	if !slices.Equal(sizes, []int{4, 8, 16, 32, 64, 64, 64, 4}) {
		t.Errorf("batches of %v", sizes)
	}
}
