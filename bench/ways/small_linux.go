package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// Small packets out of a device: a thread sends datagrams towards the device, another
// takes the frames out of it. The sender does not wait: what the reader is too slow for
// is dropped by the device.
//
// What happens where differs. A TAP queues the kernel's own packet and the reader's
// system call copies it: that is the reader's time. Into the rings of AF_PACKET and
// in its softirq: the reader's time does not contain it, and the gain is that of the reader
// alone. So the last column has both: the reader's time for a packet that it took, and the
// sender's for one that it sent. Between TAP and veth the devices differ in it too.
// A reader that is faster than the sender also waits more often, for fewer packets.

const (
	batch      = 64 // packets a reader takes at most in one go
	smallFrame = 64
	smallRoom  = 2048 // of a buffer for one
	vnetHeader = 10   // struct virtio_net_hdr
)

// A taker takes packets out of a device. It returns how many, which may be none after a
// tick. It lives on one thread.
type taker interface {
	take() (int, error)
	Close()
}

func smallGroup() group {
	g := group{letter: "A", title: "64-byte frames out of a device: read(2) from a TAP, and other ways",
		metrics: []metric{
			{name: "packets per CPU second of the reader"},
			{name: "packets/s"},
			{name: "CPU ns/packet, reader and sender", less: true},
		}}
	blast := traffic{target: wireNobody, size: smallFrame - 42, dev: "blast"}
	tap := traffic{target: tapNobody, size: smallFrame - 42, dev: "tap"}
	g.add(tap, "TAP read(2)", newTapRead)
	g.add(tap, "TAP io_uring, reads in batches", newTapRing)
	g.add(tap, "TAP io_uring, multishot read", newTapMultishot)
	g.add(blast, "AF_PACKET recvmmsg, veth", newPacketMmsg)
	g.add(blast, "AF_PACKET TPACKET_V3 ring, veth", newPacketRing)
	g.add(blast, "AF_XDP copy, generic XDP, veth", func() (taker, error) { return newXSK(blast.dev, xdpGeneric) })
	g.add(blast, "AF_XDP copy, XDP in the driver, veth", func() (taker, error) { return newXSK(blast.dev, xdpDriver) })
	return g
}

// traffic is what is sent, and where to.
type traffic struct {
	target string
	size   int    // of a datagram
	super  int    // how many of them to a superframe, 0 for none
	dev    string // where it arrives: the TAP of a, or the veth of b
}

// add adds a way that takes packets: open runs on the reading thread.
func (g *group) add(t traffic, name string, open func() (taker, error)) {
	g.ways = append(g.ways, way{name, func(ctx context.Context, l *lab, d time.Duration) (sample, error) {
		p, err := l.taken(ctx, d, t, open)
		if err != nil {
			return sample{}, err
		}
		reader, rate := float64(p.cpu)/p.n, p.n/p.clock.Seconds()
		if t.super > 0 {
			return sample{values: []float64{reader, rate, reader + p.sender}}, nil
		}
		return sample{values: []float64{p.n / p.cpu.Seconds(), rate, reader + p.sender}}, nil
	}})
}

// pace is how fast packets were taken.
type pace struct {
	n          float64
	clock, cpu time.Duration
	sender     float64 // CPU ns for each that was sent
}

// taken measures a taker under traffic, from its first packet on.
func (l *lab) taken(ctx context.Context, d time.Duration, t traffic, open func() (taker, error)) (p pace, err error) {
	ns := l.b
	if t.dev == "tap" {
		ns = l.a
	}
	err = on(ns, l.cpus[1], func() (err error) {
		r, err := open()
		if err != nil {
			return err
		}
		defer r.Close()
		end := beside(l.a, l.cpus[0], func(over *atomic.Bool) (err error) {
			p.sender, err = blast(t, over)
			return err
		})
		defer func() { err = errors.Join(err, end()) }()
		for late := time.Now().Add(2 * time.Second); ; {
			n, err := r.take()
			switch {
			case err != nil:
				return err
			case n > 0:
			case time.Now().After(late) || ctx.Err() != nil:
				return errors.New("no packet arrived")
			default:
				continue
			}
			break
		}
		s, total := newSpan(ctx, d, unix.RUSAGE_THREAD), 0
		for !s.over.Load() {
			n, err := r.take()
			if err != nil {
				s.end()
				return err
			}
			total += n
		}
		p.clock, p.cpu = s.end()
		p.n = float64(total)
		if total == 0 {
			return errors.New("no packet arrived in time")
		}
		return nil
	})
	return p, err
}

// blast sends until it is over, and returns the CPU time for each in ns.
func blast(t traffic, over *atomic.Bool) (float64, error) {
	fd, err := dial(netip.AddrPortFrom(netip.MustParseAddr(t.target), 9))
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	count := batch
	payload := make([]byte, t.size)
	if t.super > 0 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, t.size); err != nil {
			return 0, refused("UDP_SEGMENT", err)
		}
		count, payload = 1, make([]byte, t.size*t.super)
	}
	iov := unix.Iovec{Base: &payload[0]}
	iov.SetLen(len(payload))
	msgs := make([]sys.Mmsghdr, count)
	for i := range msgs {
		msgs[i].Hdr.Iov = &iov
		msgs[i].Hdr.SetIovlen(1)
	}
	sent, cpu := 0, cpuTime(unix.RUSAGE_THREAD)
	for !over.Load() {
		n, e := sys.Sendmmsg(uintptr(fd), msgs, 0)
		if e != 0 && e != unix.ENOBUFS && e != unix.EINTR {
			return 0, fmt.Errorf("sendmmsg: %w", e)
		}
		sent += n
	}
	return float64(cpuTime(unix.RUSAGE_THREAD)-cpu) / float64(max(sent, 1)), nil
}

// dial opens a connected UDP socket, a blocking one.
func dial(to netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("connect: %w", err)
	}
	return fd, nil
}

// openTAP opens the lab's TAP, with a virtio header in front of each packet. It is not
// put into the poller of Go, which would have a part in every wake-up.
func openTAP(nonblock int, offload int) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|nonblock, 0)
	if err != nil {
		return -1, refused("/dev/net/tun", err)
	}
	ifr, err := unix.NewIfreq("tap")
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("TUNSETIFF: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload); err != nil {
		unix.Close(fd)
		return -1, refused("TUNSETOFFLOAD", err)
	}
	return fd, nil
}

// openPacket opens a packet socket on the veth's far end. It receives nothing before it
// is bound, which is left to who has set it up.
func openPacket() (fd int, bind func() error, err error) {
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, nil, refused("socket AF_PACKET", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		unix.Close(fd)
		return -1, nil, refused("PACKET_IGNORE_OUTGOING", err)
	}
	return fd, func() error {
		index, err := ifindex("blast")
		if err != nil {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index}); err != nil {
			return fmt.Errorf("bind: %w", err)
		}
		return nil
	}, nil
}

// htons returns v in network byte order.
func htons(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// ifindex is the number of a device in the namespace of the thread.
func ifindex(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr); err != nil {
		return 0, fmt.Errorf("SIOCGIFINDEX: %w", err)
	}
	return int(ifr.Uint32()), nil
}
