package gso

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6

// openTap opens a TAP in the host. With flags IFF_VNET_HDR every packet has a virtio
// header; the kernel keeps from cutting what the offloads name.
func openTap(t *testing.T, h *netns.Host, name string, flags uint16, offloads int) *os.File {
	t.Helper()
	var tap *os.File
	h.Do(func() {
		ifr := check.Must(unix.NewIfreq(name))(t)
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | flags)
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		check.OK(t, err)
		for _, err := range []error{unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr), unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads), unix.SetNonblock(fd, true)} {
			if err != nil {
				unix.Close(fd)
				t.Fatal(err)
			}
		}
		tap = os.NewFile(uintptr(fd), name)
	})
	t.Cleanup(func() { tap.Close() })
	return tap
}

// write hands a superframe, in pieces, to the kernel. Offsets of g count from the start of
// the packet.
func write(tap *os.File, g frame.GSO, parts [][]byte) error {
	var h Virtio
	h.Put(g)
	_, err := tap.Write(append(h[:], flat(parts)...))
	return err
}

// read returns what the kernel hands over: a frame as a reader has to fill it in for Check.
func read(tap *os.File) (*frame.Frame, error) {
	buf := make([]byte, VirtioLen+70000)
	n, err := tap.Read(buf)
	if err != nil {
		return nil, err
	}
	g, _ := (*Virtio)(buf).GSO(0)
	return over(buf[VirtioLen:n], frame.Ethernet, g), nil
}

func deadline(taps ...*os.File) {
	for _, tap := range taps {
		tap.SetDeadline(time.Now().Add(30 * time.Second))
	}
}

// A superframe goes into the kernel by one TAP and comes out of another that takes none:
// the segments the kernel cuts are those of Cut. Then Join puts them together for the
// kernel, which cuts them into the same again.
func TestKernelCuts(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	in := openTap(t, h, "tapin", unix.IFF_VNET_HDR, offloads)
	out := openTap(t, h, "tapout", 0, 0)
	h.Bridge("br0", "tapin", "tapout")
	deadline(in, out)

	type sized struct {
		packet
		size int
	}
	r := rand.New(rand.NewPCG(12, 13))
	all := []sized{{packet{udp: true, payload: pattern(100 * joinMax)}, 100}}
	table := packets(10000)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		all = append(all, sized{table[name], 1448})
	}
	for range 300 {
		k := randomPacket(r, 1500+r.IntN(50000))
		all = append(all, sized{k, max(100+r.IntN(1300), len(k.payload)/(joinMax-1))})
	}
	buf := make([]byte, 2000)
	for _, s := range all {
		k, size := s.packet, s.size
		if k.bare {
			continue // a TAP takes Ethernet
		}
		f := k.super(size)
		if !k.udp && r.IntN(2) == 0 {
			f.GSO.Type |= frame.GSOECN // the kernel takes CWR off all but the first segment without it too
		}
		g := k.gso(size)
		g.Type = f.GSO.Type
		if r := Check(f); r != frame.NotDropped {
			t.Fatal(r)
		}
		kernel := func(g frame.GSO, parts [][]byte, n int) (segments [][]byte) {
			if err := write(in, g, parts); err != nil {
				t.Fatalf("%v: %+v", err, g)
			}
			for range n {
				n, err := out.Read(buf)
				if err != nil {
					t.Fatalf("after %d segments: %v: %+v, %d bytes in %d", len(segments), err, g, len(k.payload), size)
				}
				segments = append(segments, bytes.Clone(buf[:n]))
			}
			return segments
		}
		var c Cutter
		segments := cut(t, &c, nil, f)
		equal(t, kernel(g, [][]byte{f.Bytes()}, len(segments)), segments)

		j := Joiner{UDP: true}
		if n, g, parts := j.Join(outs(frame.Ethernet, segments...)); n > 1 {
			equal(t, kernel(g, parts, n), segments[:n])
		} else if k.flags&cwr == 0 {
			t.Errorf("%d joined", n)
		}
	}
}

// A cable joins two hosts by TAPs with all offloads: each superframe of the kernel is
// checked, cut, joined again and handed to the other kernel. It ends when a TAP is closed.
type cable struct {
	supers, segments, joined int
	refused                  frame.GSO
	drop                     frame.Reason
	err                      error
}

func (c *cable) run(from, to *os.File) {
	var cutter Cutter
	j := Joiner{UDP: true}
	for {
		f, err := read(from)
		if err != nil {
			c.err = err
			return
		}
		told := f.GSO
		if r := Check(f); r != frame.NotDropped {
			c.refused, c.drop = told, r
			continue
		}
		if f.GSO.Type != frame.GSONone {
			c.supers++
		}
		parts, _ := cutter.Cut(nil, nil, f)
		var out []frame.Out
		for i := 0; i < len(parts); i += 2 {
			c.segments++
			out = append(out, outs(frame.Ethernet, append(bytes.Clone(parts[i]), parts[i+1]...))...)
		}
		cutter.Reset()
		for len(out) > 0 {
			n, g, parts := j.Join(out)
			if n > 1 {
				c.joined++
			}
			if c.err = write(to, g, parts); c.err != nil {
				return
			}
			out = out[n:]
		}
	}
}

// TCP and UDP between two kernels whose superframes go through Check, Cut and Join.
func TestKernelToKernel(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	addrs := map[*netns.Host][2]string{a: {"10.9.0.1", "fd00:9::1"}, b: {"10.9.0.2", "fd00:9::2"}}
	taps := map[*netns.Host]*os.File{}
	for h, addr := range addrs {
		taps[h] = openTap(t, h, "tap0", unix.IFF_VNET_HDR, offloads)
		h.Up("tap0")
		h.Addr("tap0", addr[0]+"/24,"+addr[1]+"/64")
	}
	var ab, ba cable
	done := make(chan struct{}, 2)
	go func() { ab.run(taps[a], taps[b]); done <- struct{}{} }()
	go func() { ba.run(taps[b], taps[a]); done <- struct{}{} }()

	for family := range 2 {
		to := net.JoinHostPort(addrs[b][family], "7777")
		a.Transfer(b, to, 8<<20)
		send := a.Datagrams(b, to)
		for range 60 {
			send(20*1200+333, 1200)
		}
	}
	for _, tap := range taps {
		tap.Close()
	}
	<-done
	<-done
	for _, c := range []*cable{&ab, &ba} {
		if !errors.Is(c.err, os.ErrClosed) || c.drop != frame.NotDropped {
			t.Errorf("%v, refused %v: %+v", c.err, c.drop, c.refused)
		}
	}
	if ab.supers < 100 || ab.joined < 100 {
		t.Errorf("%d superframes, %d segments, %d joined: too few to say anything", ab.supers, ab.segments, ab.joined)
	}
	t.Logf("%d superframes were cut into %d segments, %d joined", ab.supers, ab.segments, ab.joined)
}
