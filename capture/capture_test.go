package capture

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	vswitch "github.com/vxswitch/vxswitch/switch"
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
		check.OK(t, err)
		i := check.Must(r.Interface(ci.InterfaceIndex))(t)
		es = append(es, entry{i.Name, i.LinkType, ci.Length, data, ci.Timestamp})
	}
}

func newCapture(t testing.TB, cfg *Config) *Capture {
	t.Helper()
	c := check.Must(New(cfg))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

func portOf(t testing.TB, c *Capture, p vswitch.Port) vswitch.Port {
	t.Helper()
	x := check.Must(c.Port(p))(t)
	return x
}

func TestCaptureOfAPort(t *testing.T) {
	c, under := newCapture(t, nil), fake.New("tap7")
	p := portOf(t, c, under)
	w, r, b := p.Writer(0), p.Readers()[0], frame.NewBatch(nil)
	read := func(f frame.Frame) {
		t.Helper()
		under.In <- f
		if err := r.Read(b); err != nil || len(b.Frames) != 1 || !bytes.Equal(b.Frames[0].Bytes(), f.Bytes()) {
			t.Fatal(err, len(b.Frames))
		}
	}
	w.Write(fake.Outs(fake.Ethernet(60, 9))) // before Start
	read(frame.Make(fake.Ethernet(61, 9)))

	var file bytes.Buffer
	start := time.Now()
	check.OK(t, c.Start(&file))
	in := fake.Ethernet(100, 1)
	read(frame.Make(in))
	refused := frame.Make(fake.Ethernet(5, 0))
	refused.Drop = frame.BadHeader
	read(refused)
	super := frame.Make(fake.Ethernet(60000, 2))
	super.GSO = frame.GSO{Type: frame.GSOTCP4, Size: 1400}
	read(super)
	unfinished := frame.Make(fake.Ethernet(70, 3))
	unfinished.GSO.Flags = frame.NeedsCsum
	read(unfinished)
	ip := frame.Make([]byte{0x45, 1, 2, 3})
	ip.Kind = frame.IPv4
	read(ip)

	o := fake.Outs(in, in, fake.Ethernet(11, 0), fake.Ethernet(60, 7), []byte{0x60, 1, 2}, fake.Ethernet(3000, 8))
	o[1].Tag, o[2].Tag, o[4].Tag, o[5].Tag = 0xabc, 5, 5, 1
	o[1].F.Priority = 5
	o[4].F.Kind = frame.IPv6
	o[5].F.GSO = frame.GSO{Type: frame.GSOTCP6, Size: 1400}
	before := len(under.Written())
	check.OK(t, w.Write(o))
	if got := under.Written()[before:]; len(got) != len(o) || !bytes.Equal(got[1].F.Bytes(), in) || got[1].Tag != 0xabc {
		t.Errorf("%d frames reached the port", len(got))
	}
	check.OK(t, c.Stop())
	end := time.Now()
	w.Write(fake.Outs(fake.Ethernet(60, 9))) // after Stop

	const eth, raw = layers.LinkTypeEthernet, layers.LinkTypeRaw
	want := []entry{
		{intf: "tap7", link: eth, data: in},
		{intf: "tap7", link: eth, data: fake.Ethernet(5, 0)},
		{intf: "tap7 superframes", link: eth, data: fake.Ethernet(60000, 2)},
		{intf: "tap7 superframes", link: eth, data: fake.Ethernet(70, 3)},
		{intf: "tap7", link: raw, data: []byte{0x45, 1, 2, 3}},
		{intf: "tap7", link: eth, data: in},
		{intf: "tap7", link: eth, data: fake.Tagged(in, 0xaa, 0xbc)},
		{intf: "tap7", link: eth, data: fake.Ethernet(11, 0)},
		{intf: "tap7", link: eth, data: fake.Ethernet(60, 7)},
		{intf: "tap7", link: raw, data: []byte{0x60, 1, 2}},
		{intf: "tap7 superframes", link: eth, data: fake.Tagged(fake.Ethernet(3000, 8), 0, 1)},
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
	c := newCapture(t, &Config{SnapLen: 15})
	w := portOf(t, c, fake.New("p")).Writer(0)
	var file bytes.Buffer
	c.Start(&file)
	o := fake.Outs(fake.Ethernet(100, 1), fake.Ethernet(14, 1), fake.Ethernet(16, 1))
	o[2].Tag = 7
	w.Write(o)
	check.OK(t, c.Stop())
	got := entries(t, file.Bytes())
	for i, want := range [][]byte{fake.Ethernet(100, 1), fake.Ethernet(14, 1), fake.Tagged(fake.Ethernet(16, 1), 0, 7)} {
		if g := got[i]; g.length != len(want) || !bytes.Equal(g.data, want[:min(15, len(want))]) {
			t.Errorf("packet %d: %d of %d bytes: %x", i, len(g.data), g.length, g.data)
		}
	}
}

func TestCaptureFilesFollowEachOther(t *testing.T) {
	c := newCapture(t, nil)
	w := portOf(t, c, fake.New("p")).Writer(0)
	if err := c.Stop(); err != nil {
		t.Errorf("Stop before Start: %v", err)
	}
	for n := range 3 { // none, one and two packets
		var file bytes.Buffer
		check.OK(t, c.Start(&file))
		if err := c.Start(&file); err == nil {
			t.Error("started twice")
		}
		for i := range n {
			w.Write(fake.Outs(fake.Ethernet(60+n, byte(i))))
		}
		check.OK(t, c.Stop())
		if got := entries(t, file.Bytes()); len(got) != n {
			t.Errorf("%d packets, want %d", len(got), n)
		}
	}
	for _, w := range []io.Writer{nil, (*os.File)(nil)} {
		if err := c.Start(w); err == nil {
			t.Errorf("started without a writer: %T", w)
		}
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
	if err := w.Write(fake.Outs(fake.Ethernet(60, 0))); err != nil {
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
	c, under := newCapture(t, &Config{Buffer: minBuffer}), fake.New("p")
	w := portOf(t, c, under).Writer(0)
	g := &gate{entered: make(chan bool), open: make(chan bool)}
	c.Start(g)
	w.Write(fake.Outs(fake.Ethernet(60, 0)))
	<-g.entered // the goroutine flushed it, waits, and takes nothing more
	const n, room = 1000, minBuffer / blockLen / 6
	for i := range n {
		w.Write(fake.Outs(fake.Ethernet(1514, byte(i))))
	}
	if s := c.Stats(); s.Packets != 1 || s.Dropped != n-room {
		t.Errorf("%+v, want %d dropped", s, n-room)
	}
	if len(under.Written()) != n+1 {
		t.Errorf("%d frames reached the port", len(under.Written()))
	}
	close(g.open)
	fake.Until(t, "packets", func() bool { return c.Stats().Packets == 1+room })
	w.Write(fake.Outs(fake.Ethernet(1514, 0xee))) // there is room again
	check.OK(t, c.Stop())
	got := entries(t, g.Bytes())
	if len(got) != room+2 {
		t.Fatalf("%d packets, want %d", len(got), room+2)
	}
	for i, e := range got[1 : 1+room] {
		if !bytes.Equal(e.data, fake.Ethernet(1514, byte(i))) {
			t.Fatalf("packet %d is wrong", i)
		}
	}
	if !bytes.Equal(got[room+1].data, fake.Ethernet(1514, 0xee)) {
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
		c, under := newCapture(t, nil), fake.New("p")
		w := portOf(t, c, under).Writer(0)
		c.Start(&failing{n})
		for i := 0; c.on.Load() != nil; i++ {
			w.Write(fake.Outs(fake.Ethernet(1000, byte(i))))
			if i > 1e6 {
				t.Fatal("the capture is still on")
			}
		}
		sent := len(under.Written())
		w.Write(fake.Outs(fake.Ethernet(1000, 0))) // off
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

func TestCaptureConfig(t *testing.T) {
	for _, c := range []struct {
		cfg   Config
		field string
	}{
		{Config{Buffer: -1}, "Buffer"}, {Config{Buffer: minBuffer - 1}, "Buffer"}, {Config{Buffer: maxBuffer + 1}, "Buffer"},
		{Config{SnapLen: -1}, "SnapLen"}, {Config{SnapLen: DefaultSnapLen + 1}, "SnapLen"},
	} {
		if _, err := New(&c.cfg); err == nil || !strings.Contains(err.Error(), "capture: Config."+c.field+": ") {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}

// Other settings hold for the next file; one that is written keeps its own.
func TestCaptureConfigure(t *testing.T) {
	c := newCapture(t, &Config{SnapLen: 15})
	w := portOf(t, c, fake.New("p")).Writer(0)
	for _, x := range []struct {
		next      Config
		kept, buf int
	}{
		{Config{SnapLen: 20, Buffer: minBuffer}, 15, DefaultBuffer}, {Config{Buffer: 2 * minBuffer}, 20, minBuffer}, {Config{}, 100, 2 * minBuffer},
		{Config{}, 100, DefaultBuffer},
	} {
		var file bytes.Buffer
		check.OK(t, c.Start(&file))
		if err := c.Configure(x.next); err != nil || c.Config() != x.next {
			t.Errorf("%v, %+v, want %+v", err, c.Config(), x.next)
		}
		if n := len(c.file.ring.buf); n != x.buf {
			t.Errorf("a buffer of %d bytes, want %d", n, x.buf)
		}
		w.Write(fake.Outs(fake.Ethernet(100, 1)))
		check.OK(t, c.Stop())
		if got := entries(t, file.Bytes()); len(got) != 1 || len(got[0].data) != x.kept {
			t.Errorf("%d packets, of the first %d bytes, want %d", len(got), len(got[0].data), x.kept)
		}
	}
	if err := c.Configure(Config{Buffer: 1}); err == nil || c.Config() != (Config{}) {
		t.Errorf("%v, %+v", err, c.Config())
	}
}

// Who sets does not wait for a file that takes nothing.
func TestCaptureConfigureWhileStopping(t *testing.T) {
	c := newCapture(t, nil)
	g := &gate{entered: make(chan bool), open: make(chan bool)}
	c.Start(g)
	portOf(t, c, fake.New("p")).Writer(0).Write(fake.Outs(fake.Ethernet(60, 0)))
	<-g.entered
	stopped := make(chan error)
	go func() { stopped <- c.Stop() }()
	for c.on.Load() != nil { // until Stop waits
		runtime.Gosched()
	}
	set := Config{SnapLen: 77}
	if err := c.Configure(set); err != nil || c.Config() != set {
		t.Errorf("%v, %+v", err, c.Config())
	}
	close(g.open)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
