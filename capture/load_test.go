package capture

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Every packet that was handed over while the capture was on is in a file or counted,
// whole, and those of one writer are in their order.
func TestCaptureUnderTraffic(t *testing.T) {
	c := newCapture(t, &Config{Buffer: minBuffer})
	p := portOf(t, c, fake.New("p"))
	u := c.Underlay(newFakeUnderlay("192.0.2.1:4789"))
	const workers = 4
	var wg sync.WaitGroup
	stop := make(chan bool)
	for k := range workers {
		wg.Go(func() {
			w, s := p.Writer(k), u.Sender(k)
			rng := rand.New(rand.NewPCG(1, uint64(k)))
			for i := uint32(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				o := fake.Outs(serial(k, i, 20+rng.IntN(1500)), serial(k, i, 20))
				w.Write(o)
				payload := serial(k, i, 20+rng.IntN(1500))
				s.Send([]frame.Datagram{{Parts: [][]byte{payload[:3], payload[3:]}, To: []frame.Endpoint{{Port: 1}}}})
				runtime.Gosched()
			}
		})
	}
	var total, written uint64
	for range 10 {
		var file bytes.Buffer
		check.OK(t, c.Start(&file))
		from := c.Stats().Packets
		fake.Until(t, "packets", func() bool { return c.Stats().Packets > from+50 })
		check.OK(t, c.Stop())
		var last [workers]uint32
		es := entries(t, file.Bytes())
		for _, e := range es {
			data := e.data
			if e.link == layers.LinkTypeRaw {
				data = data[wire.IPv6Len+wire.UDPLen:]
			}
			k, i, ok := unserial(data)
			if !ok || e.length != len(e.data) {
				t.Fatalf("a packet of %d bytes is not what was sent: %.30x", len(data), data)
			}
			if i < last[k] {
				t.Fatalf("worker %d: packet %d after %d", k, i, last[k])
			}
			last[k] = i
		}
		total += uint64(len(es))
		written = c.Stats().Packets
	}
	close(stop)
	wg.Wait()
	if total != written {
		t.Errorf("%d packets in the files, %d counted", total, written)
	}
	t.Logf("%+v", c.Stats())
}

// serial is a packet that says who sent it and how it continues.
func serial(k int, i uint32, n int) []byte {
	p := make([]byte, n)
	p[0], p[1], p[2], p[3], p[4] = byte(k), byte(i>>24), byte(i>>16), byte(i>>8), byte(i)
	for j := 5; j < n; j++ {
		p[j] = byte(k) + byte(i) + byte(j)
	}
	return p
}

func unserial(p []byte) (k int, i uint32, ok bool) {
	if len(p) < 20 {
		return 0, 0, false
	}
	k, i = int(p[0]), uint32(p[1])<<24|uint32(p[2])<<16|uint32(p[3])<<8|uint32(p[4])
	return k, i, k < 4 && bytes.Equal(p, serial(k, i, len(p)))
}

func TestCaptureAllocatesNothing(t *testing.T) {
	for _, on := range []bool{false, true} {
		c := newCapture(t, nil)
		under := newFakeUnderlay("[2001:db8::1]:4789")
		u := c.Underlay(under)
		p := portOf(t, c, fake.Discard{Port: fake.New("p")})
		if on {
			check.OK(t, c.Start(io.Discard))
		}
		var packets [][]byte
		for range frame.MaxBatch {
			packets = append(packets, fake.Ethernet(1400, 0))
		}
		o := fake.Outs(packets...)
		o[1].Tag = 7
		d := frame.Datagram{Parts: [][]byte{packets[0][:8], packets[1], packets[2]}, Seg: 1001, To: []frame.Endpoint{{Port: 1}, {Port: 2}}}
		ds := []frame.Datagram{d, d}
		w, s, r := p.Writer(0), u.Sender(0), u.Readers()[0]
		in, b := portOf(t, c, replay{fake.New("q"), packets}).Readers()[0], frame.NewBatch(nil)
		each := uint64(len(o) + 2*2*3 + len(packets) + 1)
		sent := uint64(0)
		if n := testing.AllocsPerRun(200, func() {
			w.Write(o)
			s.Send(ds)
			in.Read(b)
			under.in = packets[0]
			r.Read(b)
			for sent += each; on && c.packets.Load()+c.dropped.Load() < sent; {
				runtime.Gosched()
			}
		}); n != 0 && !fake.Race {
			t.Errorf("on %v: %v allocations a batch", on, n)
		}
		if s := c.Stats(); on && (s.Packets != sent || s.Dropped != 0) || !on && s != (Stats{}) {
			t.Errorf("on %v: %+v, want %d", on, s, sent)
		}
	}
}

// replay is a port that hands over the same packets with every Read.
type replay struct {
	*fake.Port
	packets [][]byte
}

func (r replay) Readers() []frame.Reader { return []frame.Reader{r} }

func (r replay) Read(b *frame.Batch) error {
	b.Reset()
	for _, p := range r.packets {
		b.Borrow(p, 0, len(p))
	}
	return nil
}
