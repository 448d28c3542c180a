package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket/pcapgo"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

func open(t *testing.T, c *Capture, w io.Writer, s *Selection) *File {
	t.Helper()
	f := check.Must(c.Open(w, s))(t)
	return f
}

// shown is the packets of a capture file, interface and length each.
func shown(t *testing.T, file []byte) (list []string) {
	t.Helper()
	for _, e := range entries(t, file) {
		list = append(list, e.intf+" "+e.link.String()+" "+string(rune('0'+len(e.data)%10)))
	}
	return list
}

// Each file has what it selects, side by side.
func TestCaptureSelections(t *testing.T) {
	c := newCapture(t, nil)
	p, q := portOf(t, c, fake.New("p")).Writer(0), portOf(t, c, fake.New("q")).Writer(0)
	s, other := c.Tunnel("vx", newFakeUnderlay("192.0.2.1:4789")).Sender(0), c.Tunnel("vy", newFakeUnderlay("192.0.2.2:4789")).Sender(0)
	var whole, ofP, ofVX, tagged, one bytes.Buffer
	files := []*File{
		open(t, c, &whole, nil), open(t, c, &ofP, &Selection{Port: "p"}), open(t, c, &ofVX, &Selection{Tunnel: "vx", SnapLen: 30}),
		open(t, c, &tagged, &Selection{Match: func(kind frame.Kind, b []byte) bool {
			return kind == frame.Ethernet && len(b) == 64 && b[12] == 0x81 && b[63] == fake.Ethernet(60, 1)[59]
		}}),
		open(t, c, &one, &Selection{Count: 1}),
	}
	o := fake.Outs(fake.Ethernet(60, 1))
	p.Write(o)
	o[0].Tag = 5
	q.Write(o)
	to := []frame.Endpoint{{Port: 1}}
	s.Send([]frame.Datagram{{Parts: [][]byte{{1, 2}, {3}}, To: to}})
	other.Send([]frame.Datagram{{Parts: [][]byte{{1, 2}, {3, 4}}, To: to}})
	<-files[4].Done()
	for i, f := range files {
		if err := f.Stop(); err != nil {
			t.Error(i, err)
		}
		if err := f.Stop(); err != nil {
			t.Error(i, err)
		}
	}
	if c.on.Load() != nil {
		t.Error("the capture is on")
	}
	for i, x := range []struct {
		file *bytes.Buffer
		want []string
		n    Counts
	}{
		{&whole, []string{"p Ethernet 0", "q Ethernet 4", "192.0.2.1:4789 Raw 1", "192.0.2.2:4789 Raw 2"}, Counts{4, 4, 0}},
		{&ofP, []string{"p Ethernet 0"}, Counts{1, 1, 0}},
		{&ofVX, []string{"vx Raw 0"}, Counts{1, 1, 0}},
		{&tagged, []string{"q Ethernet 4"}, Counts{1, 1, 0}},
		{&one, []string{"p Ethernet 0"}, files[4].Counts()},
	} {
		if got := shown(t, x.file.Bytes()); !slices.Equal(got, x.want) {
			t.Errorf("file %d: %q, want %q", i, got, x.want)
		}
		if n := files[i].Counts(); n != x.n || n.Packets != uint64(len(x.want)) {
			t.Errorf("file %d: %+v, want %+v", i, n, x.n)
		}
	}
}

// The statistics of a file say what it counted.
func TestCaptureStatisticsBlock(t *testing.T) {
	c := newCapture(t, &Config{Buffer: minBuffer})
	w := portOf(t, c, fake.New("p")).Writer(0)
	g := &gate{entered: make(chan bool), open: make(chan bool)}
	f := open(t, c, g, &Selection{Port: "p", Filter: "what Match does", Match: func(_ frame.Kind, b []byte) bool { return len(b) != 100 }})
	w.Write(fake.Outs(fake.Ethernet(60, 0)))
	<-g.entered
	for range 1000 {
		w.Write(fake.Outs(fake.Ethernet(1514, 0), fake.Ethernet(100, 0)))
	}
	close(g.open)
	check.OK(t, f.Stop())
	n := f.Counts()
	if n.Matched != 1001 || n.Dropped == 0 || n.Packets+n.Dropped != n.Matched {
		t.Errorf("%+v", n)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(g.Bytes()), pcapgo.NgReaderOptions{})
	check.OK(t, err)
	for err == nil {
		_, _, err = r.ReadPacketData()
	}
	i, err := r.Interface(0)
	if s := i.Statistics; err != nil || i.Filter != "what Match does" || s.PacketsReceived != n.Matched || s.PacketsDropped != n.Dropped || s.EndTime.Before(s.StartTime) {
		t.Errorf("%v %+v, want %+v", err, i, n)
	}
	file := filepath.Join(t.TempDir(), "x.pcapng")
	check.OK(t, os.WriteFile(file, g.Bytes(), 0o600))
	out, err := exec.CommandContext(t.Context(), "capinfos", "-M", "-c", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Number of packets") {
		t.Errorf("capinfos: %v\n%s", err, out)
	}
}

// A file of a segment has its frames at all attachments, and the switch pays for it only meanwhile.
func TestCaptureOfASegment(t *testing.T) {
	c := newCapture(t, nil)
	vni, none := frame.VNI(7), frame.VNI(9)
	if _, err := c.Open(io.Discard, &Selection{VNI: &vni}); err == nil || !strings.Contains(err.Error(), "call Segments first") {
		t.Errorf("%v", err)
	}
	sw := check.Must(vswitch.New(nil))(t)
	c.Segments(sw)
	a, b := fake.New("a"), fake.New("b")
	for _, x := range []struct {
		vni frame.VNI
		p   vswitch.Port
		tag uint32
	}{{7, a, 0}, {7, b, 5}, {8, b, 6}} {
		v := check.Must(sw.VSI(x.vni, nil))(t)
		check.Must(v.Attach(x.p, x.tag))(t)
	}
	ended := make(chan error)
	go func() { ended <- sw.Run(context.Background()) }()
	defer func() { sw.Close(); <-ended }()

	var file, empty bytes.Buffer
	f, e := open(t, c, &file, &Selection{VNI: &vni, Count: 4}), open(t, c, &empty, &Selection{VNI: &none})
	for range 2 {
		a.In <- frame.Make(fake.Ethernet(60, 1))
		b.In <- frame.Make(fake.Tagged(fake.Ethernet(61, 1), 0, 6))
	}
	<-f.Done()
	check.OK(t, errors.Join(f.Stop(), e.Stop()))
	if got, want := shown(t, file.Bytes()), []string{"a Ethernet 0", "b Ethernet 0", "a Ethernet 0", "b Ethernet 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := shown(t, empty.Bytes()); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestCaptureSelectionRefused(t *testing.T) {
	c := newCapture(t, nil)
	vni := frame.VNI(1)
	for want, s := range map[string]Selection{
		"capture: Selection.SnapLen: ":                                         {SnapLen: DefaultSnapLen + 1},
		"capture: Selection.Count: ":                                           {Count: -1},
		"capture: Selection.Port: only one of Port, Tunnel and VNI may be set": {Port: "p", VNI: &vni},
		"capture: Selection.Port: only one":                                    {Tunnel: "p", VNI: &vni},
	} {
		if _, err := c.Open(io.Discard, &s); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
	c.Close()
	if _, err := c.Open(io.Discard, nil); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// A Match that looks at packets of all kinds costs no memory.
func TestCaptureMatchAllocatesNothing(t *testing.T) {
	c := newCapture(t, nil)
	vni := frame.VNI(7)
	sw := check.Must(vswitch.New(nil))(t)
	defer sw.Close()
	c.Segments(sw)
	seen := 0
	match := func(_ frame.Kind, b []byte) bool { seen += len(b); return false }
	for _, s := range []Selection{{Match: match}, {VNI: &vni, Match: match}, {Tunnel: "vx", Match: match}} {
		open(t, c, io.Discard, &s)
	}
	w, u := portOf(t, c, fake.Discard{Port: fake.New("p")}).Writer(0), c.Tunnel("vx", newFakeUnderlay("192.0.2.1:4789")).Sender(0)
	o := fake.Outs(fake.Ethernet(1400, 0), fake.Ethernet(60, 0))
	o[1].Tag = 7
	ds := []frame.Datagram{{Parts: [][]byte{make([]byte, 8), make([]byte, 1400)}, To: []frame.Endpoint{{Port: 1}}}}
	f := frame.Make(fake.Ethernet(60, 0))
	if n := testing.AllocsPerRun(100, func() {
		w.Write(o)
		u.Send(ds)
		(*tap)(c).Frame(7, "p", &f)
	}); n != 0 && !fake.Race || seen == 0 {
		t.Errorf("%v allocations, %d bytes seen", n, seen)
	}
}
