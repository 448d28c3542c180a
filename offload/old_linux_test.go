package offload

import (
	"context"
	"encoding/binary"
	"flag"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var rounds = flag.Int("rounds", 8, "rounds of TestOldDecisions for each change; 10,000 take some minutes")

var (
	macA = frame.MAC{2, 0, 0, 0, 0, 0xa}
	macB = frame.MAC{2, 0, 0, 0, 0, 0xb}
)

// numbered returns an IPv4 packet for UDP port 9 from src to dst, with a number as payload.
func numbered(src, dst frame.MAC, n uint64) []byte {
	b := make([]byte, 14+20+8+8)
	copy(b, dst[:])
	copy(b[6:], src[:])
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	copy(b[14:], []byte{0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	sum := uint32(0)
	for i := 14; i < 34; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[24:], ^uint16(sum+sum>>16))
	copy(b[34:], []byte{0, 9, 0, 9, 0, 16, 0, 0})
	binary.BigEndian.PutUint64(b[42:], n)
	return b
}

// A listener has the highest number that came in on a device.
type listener struct {
	fd   int
	last atomic.Uint64
	done chan struct{}
}

func listenOn(t *testing.T, h *netns.Host, dev string) *listener {
	t.Helper()
	l := &listener{done: make(chan struct{})}
	h.Do(func() {
		ifi := check.Must(net.InterfaceByName(dev))(t)
		l.fd = check.Must(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0))(t)
		check.OK(t, unix.SetsockoptInt(l.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1))
		check.OK(t, unix.SetsockoptTimeval(l.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
		check.OK(t, unix.Bind(l.fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: ifi.Index}))
	})
	end := make(chan struct{})
	go func() {
		defer close(l.done)
		b := make([]byte, 2048)
		for {
			select {
			case <-end:
				unix.Close(l.fd)
				return
			default:
			}
			n, _, err := unix.Recvfrom(l.fd, b, 0)
			if err == nil && n >= 50 && frame.MAC(b) == macB && b[37] == 9 {
				if x := binary.BigEndian.Uint64(b[42:]); x > l.last.Load() {
					l.last.Store(x)
				}
			}
		}
	}()
	t.Cleanup(func() { close(end); <-l.done })
	return l
}

// TestOldDecisions: host A sends to host B as fast as it can. After each call that changes where B is, or whether A may reach it,
// no frame goes the old way that was sent after the call had returned.
func TestOldDecisions(t *testing.T) {
	n := netns.New(t)
	h := n.Host("h")
	h.Quiet()
	sw := check.Must(vswitch.New(nil))(t)
	vsi := check.Must(sw.VSI(1, &vswitch.VSIConfig{NoFlood: vswitch.UnknownUnicast}))(t)
	taps, at := map[string]*port.Device{}, map[string]*vswitch.Attachment{}
	open := func(name string) {
		taps[name] = nil
		h.Do(func() { taps[name] = check.Must(port.OpenTAP(name, nil))(t) })
		at[name] = check.Must(vsi.Attach(taps[name], 0))(t)
	}
	for _, name := range []string{"tapa", "tapb", "tapc"} {
		open(name)
	}
	ended := make(chan error, 1)
	go func() { ended <- sw.Run(context.Background()) }()
	defer func() { sw.Close(); check.OK(t, <-ended) }()
	o := netns.Open(t, h, func() (*Offload, error) { return New(sw, nil) })

	var sent atomic.Uint64
	stop := make(chan struct{})
	stopped := make(chan struct{})
	fd := 0
	var to atomic.Pointer[unix.SockaddrLinklayer]
	sendOn := func(dev string) {
		to.Store(&unix.SockaddrLinklayer{Ifindex: check.Must(net.InterfaceByName(dev))(t).Index})
	}
	h.Do(func() {
		fd = check.Must(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0))(t)
		sendOn("tapa")
	})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Sendto(fd, numbered(macA, macB, sent.Add(1)), 0, to.Load())
			}
		}
	}()
	defer func() { close(stop); <-stopped; unix.Close(fd) }()
	b := listenOn(t, h, "tapb")

	table := vsi.FDB()
	drop := vswitch.Slots{Ingress: drops{}}
	for _, c := range []struct {
		name string
		do   func()
		undo func()
	}{
		{"static entry moved", func() { check.OK(t, table.Set(macB, at["tapc"].Dest(0), fdb.Static)); sw.Settle() }, nil},
		{"entry deleted", func() { table.Delete(macB); sw.Settle() }, nil},
		{"filter", func() { check.OK(t, table.Set(macB, 0, fdb.Filter)); sw.Settle() }, nil},
		{"source filtered", func() { check.OK(t, table.Set(macA, 0, fdb.Filter)); sw.Settle() }, func() { table.Delete(macA) }},
		{"flush of the segment", func() { vsi.Flush(); sw.Settle() }, nil},
		{"flush of the port", func() { check.OK(t, sw.FlushPort(taps["tapb"])); sw.Settle() }, nil},
		{"policy", func() { check.OK(t, at["tapa"].Configure(vswitch.AttachConfig{Slots: drop})); sw.Settle() },
			func() { check.OK(t, at["tapa"].Configure(vswitch.AttachConfig{})) }},
		{"isolated", func() {
			check.OK(t, at["tapa"].Configure(vswitch.AttachConfig{Group: 2}))
			check.OK(t, at["tapb"].Configure(vswitch.AttachConfig{Group: 2}))
			sw.Settle()
		}, func() {
			check.OK(t, at["tapa"].Configure(vswitch.AttachConfig{}))
			check.OK(t, at["tapb"].Configure(vswitch.AttachConfig{}))
		}},
		{"detach of the source", func() { check.OK(t, at["tapa"].Detach()) }, func() {
			open("tapa")
			h.Do(func() { sendOn("tapa") })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			learnedEntry := c.name[:5] == "flush"
			for round := range *rounds {
				if learnedEntry {
					table.Delete(macB)
					for end := time.Now().Add(10 * time.Second); table.Learn(macB, at["tapb"].Dest(0), sw.Tick()) == fdb.Busy && time.Now().Before(end); {
					}
				} else {
					check.OK(t, table.Set(macB, at["tapb"].Dest(0), fdb.Static))
				}
				carried := func() bool {
					for e := range o.Flows() {
						if e.Src == macA && e.Dst == macB && e.Valid && e.Carried.Frames > 0 && e.To == at["tapb"].Dest(0) {
							return true
						}
					}
					return false
				}
				for end := time.Now().Add(10 * time.Second); !carried(); time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("round %d: not carried: %+v", round, check.Must(o.Stats())(t))
					}
				}
				c.do()
				after := sent.Load()
				time.Sleep(2 * time.Millisecond)
				for sent.Load() < after+100 && c.name != "detach of the source" {
					time.Sleep(100 * time.Microsecond)
				}
				if last := b.last.Load(); last > after {
					t.Fatalf("round %d: frame %d came the old way, %d were sent when the call returned", round, last, after)
				}
				if c.undo != nil {
					c.undo()
				}
			}
		})
	}
}

// drops is a stage that drops every frame.
type drops struct{}

func (drops) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Drop(frame.Policy) }
