package port

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/vxswitch/vxswitch/frame"
)

// entry is one packet of a capture file.
type entry struct {
	intf   string
	link   layers.LinkType
	length int
	data   []byte
	time   time.Time
}

// entries reads a capture file.
func entries(t testing.TB, file []byte) (es []entry) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatalf("capture file of %d bytes: %v", len(file), err)
	}
	for {
		data, ci, err := r.ReadPacketData()
		if err == io.EOF {
			return es
		}
		if err != nil {
			t.Fatal(err)
		}
		i, err := r.Interface(ci.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, entry{i.Name, i.LinkType, ci.Length, data, ci.Timestamp})
	}
}

func newCapture(t testing.TB, cfg *CaptureConfig) *Capture {
	t.Helper()
	c, err := NewCapture(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func capturePortOf(t testing.TB, c *Capture, p Port) Port {
	t.Helper()
	x, err := c.Port(p)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestCaptureOfAPort(t *testing.T) {
	c, under := newCapture(t, nil), newFake("tap7")
	p := capturePortOf(t, c, under)
	w, r, b := p.Writer(0), p.Readers()[0], frame.NewBatch(nil)
	read := func(f frame.Frame) {
		t.Helper()
		under.in <- f
		if err := r.Read(b); err != nil || len(b.Frames) != 1 || !bytes.Equal(b.Frames[0].Bytes(), f.Bytes()) {
			t.Fatal(err, len(b.Frames))
		}
	}
	w.Write(outs(ethernet(60, 9))) // before Start
	read(frame.Make(ethernet(61, 9)))

	var file bytes.Buffer
	start := time.Now()
	if err := c.Start(&file); err != nil {
		t.Fatal(err)
	}
	in := ethernet(100, 1)
	read(frame.Make(in))
	refused := frame.Make(ethernet(5, 0))
	refused.Drop = frame.BadHeader
	read(refused)
	super := frame.Make(ethernet(60000, 2))
	super.GSO = frame.GSO{Type: frame.GSOTCP4, Size: 1400}
	read(super)
	unfinished := frame.Make(ethernet(70, 3))
	unfinished.GSO.Flags = frame.NeedsCsum
	read(unfinished)
	ip := frame.Make([]byte{0x45, 1, 2, 3})
	ip.Kind = frame.IPv4
	read(ip)

	o := outs(in, in, ethernet(11, 0), ethernet(60, 7), []byte{0x60, 1, 2}, ethernet(3000, 8))
	o[1].Tag, o[2].Tag, o[4].Tag, o[5].Tag = 0xabc, 5, 5, 1
	o[4].F.Kind = frame.IPv6
	o[5].F.GSO = frame.GSO{Type: frame.GSOTCP6, Size: 1400}
	before := len(under.written())
	if err := w.Write(o); err != nil {
		t.Fatal(err)
	}
	if got := under.written()[before:]; len(got) != len(o) || !bytes.Equal(got[1].F.Bytes(), in) || got[1].Tag != 0xabc {
		t.Errorf("%d frames reached the port", len(got))
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	end := time.Now()
	w.Write(outs(ethernet(60, 9))) // after Stop

	const eth, raw = layers.LinkTypeEthernet, layers.LinkTypeRaw
	want := []entry{
		{intf: "tap7", link: eth, data: in},
		{intf: "tap7", link: eth, data: ethernet(5, 0)},
		{intf: "tap7 superframes", link: eth, data: ethernet(60000, 2)},
		{intf: "tap7 superframes", link: eth, data: ethernet(70, 3)},
		{intf: "tap7", link: raw, data: []byte{0x45, 1, 2, 3}},
		{intf: "tap7", link: eth, data: in},
		{intf: "tap7", link: eth, data: tagged(in, 0x0a, 0xbc)},
		{intf: "tap7", link: eth, data: ethernet(11, 0)},
		{intf: "tap7", link: eth, data: ethernet(60, 7)},
		{intf: "tap7", link: raw, data: []byte{0x60, 1, 2}},
		{intf: "tap7 superframes", link: eth, data: tagged(ethernet(3000, 8), 0, 1)},
	}
	got := entries(t, file.Bytes())
	if len(got) != len(want) {
		t.Fatalf("%d packets, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if g.intf != w.intf || g.link != w.link || g.length != len(w.data) || !bytes.Equal(g.data, w.data) {
			t.Errorf("packet %d: %q link type %v, %d bytes\ngot  %.40x\nwant %q %v %.40x", i, g.intf, g.link, g.length, g.data, w.intf, w.link, w.data)
		}
		if g.time.Before(start.Add(-time.Microsecond)) || g.time.After(end) {
			t.Errorf("packet %d: time %v, not from %v to %v", i, g.time, start, end)
		}
	}
	if s := c.Stats(); s.Packets != uint64(len(want)) || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

func TestCaptureSnapLength(t *testing.T) {
	c := newCapture(t, &CaptureConfig{SnapLen: 15})
	w := capturePortOf(t, c, newFake("p")).Writer(0)
	var file bytes.Buffer
	c.Start(&file)
	o := outs(ethernet(100, 1), ethernet(14, 1), ethernet(16, 1))
	o[2].Tag = 7
	w.Write(o)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	got := entries(t, file.Bytes())
	for i, want := range [][]byte{ethernet(100, 1), ethernet(14, 1), tagged(ethernet(16, 1), 0, 7)} {
		if g := got[i]; g.length != len(want) || !bytes.Equal(g.data, want[:min(15, len(want))]) {
			t.Errorf("packet %d: %d of %d bytes: %x", i, len(g.data), g.length, g.data)
		}
	}
}

func TestCaptureFilesFollowEachOther(t *testing.T) {
	c := newCapture(t, nil)
	w := capturePortOf(t, c, newFake("p")).Writer(0)
	if err := c.Stop(); err != nil {
		t.Errorf("Stop before Start: %v", err)
	}
	for n := range 3 { // none, one and two packets
		var file bytes.Buffer
		if err := c.Start(&file); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(&file); err == nil {
			t.Error("started twice")
		}
		for i := range n {
			w.Write(outs(ethernet(60+n, byte(i))))
		}
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		if got := entries(t, file.Bytes()); len(got) != n {
			t.Errorf("%d packets, want %d", len(got), n)
		}
	}
	if err := c.Start(nil); err == nil {
		t.Error("started without a writer")
	}
	c.Start(io.Discard)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Start(io.Discard); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Start after Close: %v", err)
	}
	if err := w.Write(outs(ethernet(60, 0))); err != nil {
		t.Error(err)
	}
}

// gate is a writer that waits until it is opened.
type gate struct {
	bytes.Buffer
	entered chan bool
	open    chan bool
	once    sync.Once
}

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.entered) })
	<-g.open
	return g.Buffer.Write(p)
}

func TestCaptureFullBufferIsCounted(t *testing.T) {
	c, under := newCapture(t, &CaptureConfig{Buffer: minCapture}), newFake("p")
	w := capturePortOf(t, c, under).Writer(0)
	g := &gate{entered: make(chan bool), open: make(chan bool)}
	c.Start(g)
	w.Write(outs(ethernet(60, 0)))
	<-g.entered // the goroutine flushed it, waits, and takes nothing more
	const n, room = 1000, minCapture / captureBlock / 6
	for i := range n {
		w.Write(outs(ethernet(1514, byte(i))))
	}
	if s := c.Stats(); s.Packets != 1 || s.Dropped != n-room {
		t.Errorf("%+v, want %d dropped", s, n-room)
	}
	if len(under.written()) != n+1 {
		t.Errorf("%d frames reached the port", len(under.written()))
	}
	close(g.open)
	waitFor(t, func() bool { return c.Stats().Packets == 1+room })
	w.Write(outs(ethernet(1514, 0xee))) // there is room again
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	got := entries(t, g.Bytes())
	if len(got) != room+2 {
		t.Fatalf("%d packets, want %d", len(got), room+2)
	}
	for i, e := range got[1 : 1+room] {
		if !bytes.Equal(e.data, ethernet(1514, byte(i))) {
			t.Fatalf("packet %d is wrong", i)
		}
	}
	if !bytes.Equal(got[room+1].data, ethernet(1514, 0xee)) {
		t.Error("the packet after the gap is wrong")
	}
}

// failing is a writer that takes n bytes.
type failing struct{ n int }

var errFailing = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFailing
	}
	return len(p), nil
}

func TestCaptureWriterThatFails(t *testing.T) {
	for _, n := range []int{0, 5000} {
		c, under := newCapture(t, nil), newFake("p")
		w := capturePortOf(t, c, under).Writer(0)
		c.Start(&failing{n})
		for i := 0; c.on.Load() != nil; i++ {
			w.Write(outs(ethernet(1000, byte(i))))
			if i > 1e6 {
				t.Fatal("the capture is still on")
			}
		}
		sent := len(under.written())
		w.Write(outs(ethernet(1000, 0))) // off
		if err := c.Stop(); !errors.Is(err, errFailing) {
			t.Errorf("Stop: %v", err)
		}
		// The last frame before may have found it off.
		if s := c.Stats(); s.Packets+s.Dropped != uint64(sent) && s.Packets+s.Dropped != uint64(sent-1) || sent == 0 {
			t.Errorf("%+v of %d", s, sent)
		}
		if err := c.Start(io.Discard); err != nil {
			t.Errorf("Start after a failure: %v", err)
		}
	}
}

// Every packet that was handed over while the capture was on is in a file or counted,
// whole, and those of one writer are in their order.
func TestCaptureUnderTraffic(t *testing.T) {
	c := newCapture(t, &CaptureConfig{Buffer: minCapture})
	p := capturePortOf(t, c, newFake("p"))
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
				o := outs(serial(k, i, 20+rng.IntN(1500)), serial(k, i, 20))
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
		if err := c.Start(&file); err != nil {
			t.Fatal(err)
		}
		from := c.Stats().Packets
		waitFor(t, func() bool { return c.Stats().Packets > from+50 })
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		var last [workers]uint32
		es := entries(t, file.Bytes())
		for _, e := range es {
			data := e.data
			if e.link == layers.LinkTypeRaw {
				data = data[ip6Len+udpLen:]
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

func TestCaptureConfig(t *testing.T) {
	for _, c := range []struct {
		cfg   CaptureConfig
		field string
	}{
		{CaptureConfig{Buffer: -1}, "Buffer"}, {CaptureConfig{Buffer: minCapture - 1}, "Buffer"}, {CaptureConfig{Buffer: maxCapture + 1}, "Buffer"},
		{CaptureConfig{SnapLen: -1}, "SnapLen"}, {CaptureConfig{SnapLen: DefaultSnapLen + 1}, "SnapLen"},
	} {
		if _, err := NewCapture(&c.cfg); err == nil || !strings.Contains(err.Error(), "CaptureConfig."+c.field+": ") {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}

// Other settings hold for the next file; one that is written keeps its own.
func TestCaptureConfigure(t *testing.T) {
	c := newCapture(t, &CaptureConfig{SnapLen: 15})
	w := capturePortOf(t, c, newFake("p")).Writer(0)
	for _, x := range []struct {
		next      CaptureConfig
		kept, buf int
	}{
		{CaptureConfig{SnapLen: 20, Buffer: minCapture}, 15, DefaultCaptureBuffer}, {CaptureConfig{Buffer: 2 * minCapture}, 20, minCapture}, {CaptureConfig{}, 100, 2 * minCapture},
		{CaptureConfig{}, 100, DefaultCaptureBuffer},
	} {
		var file bytes.Buffer
		if err := c.Start(&file); err != nil {
			t.Fatal(err)
		}
		if err := c.Configure(x.next); err != nil || c.Config() != x.next {
			t.Errorf("%v, %+v, want %+v", err, c.Config(), x.next)
		}
		if n := len(c.file.ring.buf); n != x.buf {
			t.Errorf("a buffer of %d bytes, want %d", n, x.buf)
		}
		w.Write(outs(ethernet(100, 1)))
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		if got := entries(t, file.Bytes()); len(got) != 1 || len(got[0].data) != x.kept {
			t.Errorf("%d packets, of the first %d bytes, want %d", len(got), len(got[0].data), x.kept)
		}
	}
	if err := c.Configure(CaptureConfig{Buffer: 1}); err == nil || c.Config() != (CaptureConfig{}) {
		t.Errorf("%v, %+v", err, c.Config())
	}
}

// Who sets does not wait for a file that takes nothing.
func TestCaptureConfigureWhileStopping(t *testing.T) {
	c := newCapture(t, nil)
	g := &gate{entered: make(chan bool), open: make(chan bool)}
	c.Start(g)
	capturePortOf(t, c, newFake("p")).Writer(0).Write(outs(ethernet(60, 0)))
	<-g.entered
	stopped := make(chan error)
	go func() { stopped <- c.Stop() }()
	for c.on.Load() != nil { // until Stop waits
		runtime.Gosched()
	}
	set := CaptureConfig{SnapLen: 77}
	if err := c.Configure(set); err != nil || c.Config() != set {
		t.Errorf("%v, %+v", err, c.Config())
	}
	close(g.open)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestCaptureAllocatesNothing(t *testing.T) {
	for _, on := range []bool{false, true} {
		c := newCapture(t, nil)
		under := newFakeUnderlay("[2001:db8::1]:4789")
		u := c.Underlay(under)
		p := capturePortOf(t, c, discard{newFake("p")})
		if on {
			if err := c.Start(io.Discard); err != nil {
				t.Fatal(err)
			}
		}
		var packets [][]byte
		for range frame.MaxBatch {
			packets = append(packets, ethernet(1400, 0))
		}
		o := outs(packets...)
		o[1].Tag = 7
		d := frame.Datagram{Parts: [][]byte{packets[0][:8], packets[1], packets[2]}, Seg: 1001, To: []frame.Endpoint{{Port: 1}, {Port: 2}}}
		ds := []frame.Datagram{d, d}
		w, s, r := p.Writer(0), u.Sender(0), u.Readers()[0]
		in, b := capturePortOf(t, c, replay{newFake("q"), packets}).Readers()[0], frame.NewBatch(nil)
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
		}); n != 0 && !raceEnabled {
			t.Errorf("on %v: %v allocations a batch", on, n)
		}
		if s := c.Stats(); on && (s.Packets != sent || s.Dropped != 0) || !on && s != (CaptureStats{}) {
			t.Errorf("on %v: %+v, want %d", on, s, sent)
		}
	}
}

// replay is a port that hands over the same packets with every Read.
type replay struct {
	Port
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
