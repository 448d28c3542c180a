package underlay

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// arrival is one message as recvmmsg hands it over.
type arrival struct {
	data  []byte
	seg   int // of UDP_GRO, 0 for none
	trunc bool
}

// put makes message i of a reader.
func (m arrival) put(r *reader, i int) {
	r.Blocks[i] = new(frame.Block)
	copy(r.Blocks[i][datagrams.RoomAt(i):], m.data)
	h := &r.Msgs[i]
	h.Len = uint32(len(m.data))
	if m.trunc {
		h.Hdr.Flags = unix.MSG_TRUNC
	}
	h.Hdr.Namelen = sys.PutSockaddr(&r.names[i], &frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 2}, Port: 4789}, true)
	if m.seg != 0 {
		h.Hdr.SetControllen(sys.PutCmsgInt(r.ctl[i][:], unix.SOL_UDP, unix.UDP_GRO, m.seg))
	}
}

// room returns all the memory a frame can be grown to without being copied.
func room(f frame.Frame) []byte {
	f.Push(f.Headroom())
	for step := 1 << 17; step > 0; step /= 2 {
		f.Extend(step)
	}
	return f.Bytes()
}

// Every byte of a message is in the segment it belongs to and in no other, whatever the
// kernel says of it; no frame can be grown into another; and a run that fits one batch is
// not spread over two.
func FuzzSplit(f *testing.F) {
	f.Add(pattern(100), int32(0), false, uint16(2048), byte(0), byte(0))
	f.Add(pattern(100), int32(30), true, uint16(2048), byte(100), byte(3))
	f.Add(pattern(100), int32(30), false, uint16(20), byte(0), byte(63))
	f.Add(pattern(1000), int32(3), false, uint16(2048), byte(5), byte(1))
	f.Add(pattern(7), int32(-1), false, uint16(2048), byte(128), byte(0))
	f.Add(pattern(7), int32(8), true, uint16(0), byte(0), byte(0))
	f.Add([]byte{}, int32(5), false, uint16(1), byte(0), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, seg int32, trunc bool, most uint16, before, at byte) {
		if len(data) > maxMessage {
			return
		}
		r := newReader(&base{cfg: UDPConfig{MaxDatagram: int(most)}}, nil)
		r.At = int(at) % datagrams.MaxMessages
		r.N = r.At + 1
		where := r.At
		arrival{data, int(seg), trunc}.put(r, where)
		base := uintptr(unsafe.Pointer(r.Blocks[where]))

		size, want := len(data), 1 // of a datagram, and how many there are
		if seg > 0 && int(seg) < len(data) {
			size = int(seg)
			want = (len(data) + size - 1) / size
		}
		b := frame.NewBatch(nil)
		taken := min(int(before), frame.MaxBatch)
		for range taken {
			b.Borrow(nil, 0, 0)
		}
		var sizes []int
		off, free, got, cut := 0, uintptr(0), 0, 0
		for ; r.At < r.N; taken = 0 {
			r.deliver(b)
			fs := b.Frames[taken:]
			if len(fs) == 0 && taken == 0 {
				t.Fatal("an empty batch")
			}
			if len(fs) > 0 {
				sizes = append(sizes, len(fs))
			}
			for i := range fs {
				n := min(size, len(data)-off)
				last := off+n == len(data)
				if !bytes.Equal(fs[i].Bytes(), data[off:off+min(n, int(most))]) {
					t.Fatalf("datagram %d: %q, want %q", got, fs[i].Bytes(), data[off:off+n])
				}
				drop := frame.NotDropped
				if n > int(most) || trunc && last {
					drop = frame.TooBig
					cut++
				}
				if fs[i].Drop != drop {
					t.Fatalf("datagram %d: %v, want %v", got, fs[i].Drop, drop)
				}
				if m := room(fs[i]); len(m) > 0 {
					lo := uintptr(unsafe.Pointer(&m[0])) - base
					hi := lo + uintptr(len(m))
					if lo < free || hi > unsafe.Sizeof(frame.Block{}) {
						t.Fatalf("datagram %d has room from %d to %d of the block, and %d is taken", got, lo, hi, free)
					}
					if free = hi; !last && hi != uintptr(datagrams.RoomAt(where)+off+n) {
						t.Fatalf("datagram %d has room up to %d", got, hi)
					}
				}
				off += n
				got++
			}
			b.Reset()
		}
		if off != len(data) || got != want {
			t.Fatalf("%d of %d bytes in %d datagrams of %d", off, len(data), got, want)
		}
		if len(sizes) > 1 && want <= frame.MaxBatch {
			t.Fatalf("a run of %d in batches of %v", want, sizes)
		}
		runs, segs := uint64(0), uint64(0)
		if want > 1 {
			runs, segs = 1, uint64(want)
		}
		if r.Rx.Runs.Load() != runs || r.Rx.Segments.Load() != segs || r.Rx.Truncated.Load() != uint64(cut) {
			t.Fatalf("counted %d runs of %d datagrams, %d cut; want %d, %d, %d", r.Rx.Runs.Load(), r.Rx.Segments.Load(), r.Rx.Truncated.Load(), runs, segs, cut)
		}
	})
}

// received is an underlay to which messages have come, and no more will.
type received struct {
	fake.Underlay
	*reader
	closed chan struct{}
}

func (u *received) Readers() []frame.Reader     { return []frame.Reader{u} }
func (u *received) Sender(int) frame.Sender     { return u }
func (u *received) Send([]frame.Datagram) error { return nil }
func (u *received) LocalAddr() netip.AddrPort   { return netip.MustParseAddrPort("10.0.0.1:4789") }
func (u *received) Close() error                { close(u.closed); return nil }
func (u *received) Read(b *frame.Batch) error {
	b.Reset()
	if u.At == u.N {
		<-u.closed
		return net.ErrClosed
	}
	u.deliver(b)
	return nil
}

// Runs as no sender of ours makes them: each datagram is delivered behind the VTEP or
// counted under a name.
func TestSplitMessagesInATunnel(t *testing.T) {
	const full = 8 + 60
	in := func(vni byte, n int) []byte { // header and a broadcast frame
		return slices.Concat([]byte{8, 0, 0, 0, 0, 0, vni, 0}, []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, make([]byte, n-8-14))
	}
	ok := in(100, full)
	for _, tc := range []struct {
		name  string
		m     arrival
		drops map[frame.Reason]uint64
		taken int
	}{
		{"whole", arrival{slices.Concat(ok, ok, ok), full, false}, nil, 3},
		{"a short last one", arrival{slices.Concat(ok, ok, in(100, 30)), full, false}, nil, 3},
		{"a last one without a header", arrival{slices.Concat(ok, ok, ok[:7]), full, false}, map[frame.Reason]uint64{frame.Short: 1}, 2},
		{"a last one of one byte", arrival{slices.Concat(ok, ok[:1]), full, false}, map[frame.Reason]uint64{frame.Short: 1}, 1},
		{"a last one of a header", arrival{slices.Concat(ok, ok[:8]), full, false}, map[frame.Reason]uint64{frame.Short: 1}, 1},
		{"a last one without an EtherType", arrival{slices.Concat(ok, ok[:8+13]), full, false}, map[frame.Reason]uint64{frame.Short: 1}, 1},
		{"segments shorter than a header", arrival{ok, 7, false}, map[frame.Reason]uint64{frame.Short: 10}, 0},
		{"segments of a byte", arrival{ok, 1, false}, map[frame.Reason]uint64{frame.Short: full}, 0},
		{"segments of half a frame", arrival{slices.Concat(ok, ok), full / 2, false}, map[frame.Reason]uint64{frame.NoVNIFlag: 2}, 2},
		{"no segment size", arrival{slices.Concat(ok, ok), 0, false}, nil, 1},
		{"a negative segment size", arrival{slices.Concat(ok, ok), -full, false}, nil, 1},
		{"segments as long as the message", arrival{ok, full, false}, nil, 1},
		{"segments longer than the message", arrival{ok, 40000, false}, nil, 1},
		{"of several networks", arrival{slices.Concat(ok, in(7, full), ok), full, false}, map[frame.Reason]uint64{frame.UnknownVNI: 1}, 2},
		{"cut by the buffer", arrival{slices.Concat(ok, ok, ok[:40]), full, true}, map[frame.Reason]uint64{frame.TooBig: 1}, 2},
		{"cut by the buffer at a segment's end", arrival{slices.Concat(ok, ok), full, true}, map[frame.Reason]uint64{frame.TooBig: 1}, 1},
		{"one, cut by the buffer", arrival{ok, 0, true}, map[frame.Reason]uint64{frame.TooBig: 1}, 0},
		{"segments longer than a datagram may be", arrival{slices.Concat(in(100, 201), in(100, 201), ok), 201, false}, map[frame.Reason]uint64{frame.TooBig: 2}, 1},
		{"empty", arrival{nil, full, false}, map[frame.Reason]uint64{frame.Short: 1}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := &received{fake.Underlay{}, newReader(&base{cfg: UDPConfig{MaxDatagram: 200}}, nil), make(chan struct{})}
			u.N = 2
			tc.m.put(u.reader, 0)
			arrival{data: ok}.put(u.reader, 1) // what follows is not harmed
			v := check.Must(vtep.New(nil, u))(t)
			sw := check.Must(vswitch.New(nil))(t)
			vsi, err := sw.VSI(100, nil)
			must(t, err)
			pipe := port.NewPipe(nil)
			for p, tag := range map[vswitch.Port]uint32{pipe: 0, v: 100} {
				check.Must(vsi.Attach(p, tag))(t)
			}
			done := make(chan error, 1)
			go func() { done <- sw.Run(context.Background()) }()
			dropped := uint64(0)
			for _, n := range tc.drops {
				dropped += n
			}
			want := uint64(tc.taken) + 1
			var st vswitch.PortStats
			fake.Until(t, "the datagrams are counted", func() bool {
				for _, p := range sw.Stats().Ports {
					if p.Name == "vtep" {
						st = p
					}
				}
				return st.Rx.Frames >= want+dropped && st.Flood.Broadcast+st.RxDrops.Total() == st.Rx.Frames
			})
			sw.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
			out := uint64(0)
			for _, p := range sw.Stats().Ports {
				if p.Name == "pipe" {
					out = p.Tx.Frames
				}
			}
			drops := maps.Collect(st.RxDrops.All())
			if st.Rx.Frames != want+dropped || out != want || len(drops) != len(tc.drops) || dropped > 0 && !maps.Equal(drops, tc.drops) {
				t.Errorf("%d datagrams, %d delivered, dropped %v; want %d delivered and %v", st.Rx.Frames, out, drops, want, tc.drops)
			}
		})
	}
}
