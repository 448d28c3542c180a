package icmperr

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

// A bridge of the kernel with a TAP and a vxlan device in it: the same frames go into
// the TAP and into a TooBig. Left out is where they differ: Linux 6.18 answers an IPv6
// packet whose source is a multicast address, which RFC 4443, section 2.4, e.6, forbids.
func TestAgainstLinux(t *testing.T) {
	for _, c := range []struct {
		name          string
		local, remote string
		mtu           int
	}{{"over IPv4", "10.0.0.1", "10.0.0.2", 1450}, {"over IPv6", "fd00::1", "fd00::2", 1430}} {
		t.Run(c.name, func(t *testing.T) {
			n := netns.New(t)
			h, far := n.Host("h"), n.Host("far")
			n.Link(h, "10.0.0.1/24,fd00::1/64", far, "10.0.0.2/24,fd00::2/64")
			var tap *port.Device
			var err error
			h.Do(func() { tap, err = port.OpenTAP("tap0", nil) })
			if err != nil {
				t.Fatal(err)
			}
			defer tap.Close()
			h.VXLAN("vx0", netns.VXLAN{ID: 100, Local: c.local, Remote: c.remote})
			h.MTU("vx0", 1500)
			h.Bridge("br0", "tap0", "vx0")
			answers := make(chan []byte, 100)
			go read(tap, answers)

			s := newTooBig(0, 0)
			w := tap.Writer(0)
			ours := func(in []byte) (answer []byte) {
				f := entered(in)
				if s.Process(&f, frame.At{MTU: c.mtu + 14}) == frame.Reply {
					answer = f.Bytes()
				}
				return answer
			}
			send := func(in []byte) {
				t.Helper()
				f := entered(in)
				out := []frame.Out{{F: &f}}
				if err := w.Write(out); err != nil || out[0].Drop != frame.NotDropped {
					t.Fatal(err, out[0].Drop)
				}
			}
			next := func() []byte {
				t.Helper()
				select {
				case b := <-answers:
					return b
				case <-time.After(10 * time.Second):
					t.Fatal("no answer from Linux")
					return nil
				}
			}

			for name, in := range map[string][]byte{
				"IPv4": udp4(t, 1500), "one byte too long": udp4(t, c.mtu+1), "ICMP echo": icmp4(t, 8),
				"IPv6": udp6(t, 1500), "one byte too long, IPv6": udp6(t, c.mtu+1), "ICMPv6 echo": chain6(t, 58, 128),
			} {
				send(in)
				if theirs, ours := next(), ours(in); !bytes.Equal(normal(theirs), normal(ours)) {
					t.Errorf("%s:\nLinux % x\nours  % x", name, theirs[:min(len(theirs), 80)], ours[:min(len(ours), 80)])
				}
			}
			// To what neither answers, the next answer is to the frame after it.
			last := udp4(t, 1499)
			for name, in := range map[string][]byte{
				"fits": udp4(t, c.mtu), "fits, IPv6": udp6(t, c.mtu), "no DF": change4(t, func(ip []byte) { ip[6] = 0 }),
				"later fragment": change4(t, func(ip []byte) { ip[7] = 9 }), "ICMP unreachable": icmp4(t, 3), "ICMP redirect": icmp4(t, 5),
				"from loopback": src4(t, 127, 0, 0, 1), "from 0.0.0.0": src4(t, 0, 0, 0, 0), "from a group": src4(t, 224, 0, 0, 1),
				"ICMPv6 unreachable": chain6(t, 58, 1), "ICMPv6 too big": chain6(t, 58, 2), "from ::": addr6(t, 8, "::"),
			} {
				send(in)
				send(last)
				s = newTooBig(0, 0)
				if ours(in) != nil {
					t.Errorf("%s: answered by us", name)
				}
				if b := next(); !bytes.Equal(normal(b), normal(ours(last))) {
					t.Errorf("%s: answered by Linux: % x", name, b[:min(len(b), 80)])
					next()
				}
			}
		})
	}
}

// read passes on what the kernel sends to host A.
func read(tap *port.Device, answers chan<- []byte) {
	for b := frame.NewBatch(nil); tap.Readers()[0].Read(b) == nil; {
		for i := range b.Frames {
			if p := b.Frames[i].Bytes(); frame.MAC(p) == macA {
				answers <- bytes.Clone(p)
			}
		}
	}
}

// normal is an answer with TOS 0, TTL or hop limit 64, and the header checksum that
// goes with them. In a bridge Linux 6.18 leaves out the precedence of RFC 1812, which
// it sets as a router, and takes the TTL of the packet it answers.
func normal(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < 34 {
		return b
	}
	if b[14] != 0x45 {
		b[21] = 64
		return b
	}
	b[15], b[22], b[24], b[25] = 0, 64, 0, 0
	var sum uint32
	for i := 14; i < 34; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[24:], ^uint16(sum>>16+sum&0xffff))
	return b
}
