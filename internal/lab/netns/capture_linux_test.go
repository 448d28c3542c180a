package netns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// testFrame is a frame that no stack answers.
func testFrame(text string, n int) []byte {
	f := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, text...)
	return binary.BigEndian.AppendUint32(f, uint32(n))
}

func TestCaptureHasEverythingInOrder(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	a.Quiet()
	b.Quiet()
	dev, far := n.Link(a, "", b, "")
	const count = 2000
	var frames [][]byte
	for i := range count {
		frames = append(frames, testFrame("number", i))
	}
	a.Inject(dev, testFrame("before", 0))
	here, there := a.Capture(dev, ""), b.Capture(far, "")
	a.Inject(dev, frames...)
	for _, c := range []struct {
		name string
		got  []Packet
		out  bool
	}{{"sent", here.Stop(), true}, {"received", there.Stop(), false}} {
		check.Need(t, len(c.got) == count, "%s: %d packets, want %d", c.name, len(c.got), count)
		for i, p := range c.got {
			if !bytes.Equal(p.Data, frames[i]) || p.Out != c.out || p.Time.IsZero() || p.Unfinished {
				t.Fatalf("%s: packet %d: %+v", c.name, i, p)
			}
		}
	}
	a.Inject(dev, testFrame("after", 0))
	if got := there.Stop(); len(got) != count {
		t.Errorf("%d packets after the second Stop", len(got))
	}
}

func TestCaptureFilters(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	a.Quiet()
	b.Quiet()
	dev, far := n.Link(a, "", b, "")
	c := b.Capture(far, "ether proto 0x88b5 and ether src 02:00:00:00:00:01")
	other := testFrame("other", 1)
	other[12] = 0x99
	a.Inject(dev, other, testFrame("mine", 7))
	if got := c.Stop(); len(got) != 1 || !bytes.Contains(got[0].Data, []byte("mine")) {
		t.Errorf("got\n%s", Dump(got))
	}
	check.True(t, check.Err(compile(t, "no filter of tcpdump")) != nil, "a filter that is none was taken")
}

// The kernel takes VLAN tags out of what it receives; the capture puts them back.
func TestCaptureKeepsVLANTags(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	a.Quiet()
	b.Quiet()
	dev, far := n.Link(a, "", b, "")
	plain := testFrame("tagged", 3)
	frames := [][]byte{
		slices.Concat(plain[:12], []byte{0x81, 0x00, 0x60, 0x05}, plain[12:]),
		slices.Concat(plain[:12], []byte{0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x05}, plain[12:]),
	}
	c := b.Capture(far, "")
	a.Inject(dev, frames...)
	got := c.Stop()
	if len(got) != 2 || !bytes.Equal(got[0].Data, frames[0]) || !bytes.Equal(got[1].Data, frames[1]) {
		t.Errorf("got\n%swant %x and %x", Dump(got), frames[0], frames[1])
	}
}

func TestCaptureWantWaits(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	dev, _ := n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	c := a.Capture(dev, "icmp")
	p := a.Start("ping", "-n", "-c", "3", "-i", "0.2", "10.0.0.2")
	in := c.Want(3, func(p Packet) bool { return !p.Out })
	if len(in) != 3 || in[0].Data[34] != 0 { // echo reply
		t.Errorf("got\n%s", Dump(in))
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if got := c.Stop(); len(got) != 6 {
		t.Errorf("%d packets, want 6\n%s", len(got), Dump(got))
	}
	if rows := Fields(t, c.Seen(), "icmp.type == 0", "ip.src", "icmp.seq", "ip.checksum.status"); fmt.Sprint(rows) !=
		"[[10.0.0.2 1 1] [10.0.0.2 2 1] [10.0.0.2 3 1]]" {
		t.Errorf("tshark: %v", rows)
	}
	if out := Tshark(t, c.Seen()); strings.Count(out, "Echo (ping) request") != 3 {
		t.Errorf("tshark:\n%s", out)
	}
}

// A veth leaves the UDP checksum to a network card that is not there, and the capture
// says so.
func TestCaptureTellsUnfinishedChecksums(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	dev, _ := n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	for _, off := range []bool{false, true} {
		if off {
			a.TxOff(dev)
		}
		c := a.Capture(dev, "udp port 7000")
		a.Do(func() {
			u := check.Must(net.Dial("udp4", "10.0.0.2:7000"))(t)
			defer u.Close()
			u.Write([]byte("hello"))
		})
		if got := c.Want(1, nil); got[0].Unfinished == off {
			t.Errorf("offload off %v: %+v", off, got[0])
		}
	}
}

// A device that goes down does not end the capture on it.
func TestCaptureOutlivesLinkDown(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	a.Quiet()
	b.Quiet()
	dev, far := n.Link(a, "", b, "")
	c := b.Capture(far, "")
	a.Inject(dev, testFrame("one", 1))
	b.IP("link", "set", far, "down")
	b.Up(far)
	a.Inject(dev, testFrame("two", 2))
	if got := c.Stop(); len(got) != 2 {
		t.Errorf("got\n%s", Dump(got))
	}
}
