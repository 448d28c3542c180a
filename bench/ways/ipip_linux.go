package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// TCP segments inside IP in IP into the network: a superframe of 45, as a guest makes them,
// as packets of 1500 bytes. A raw socket has the kernel write the outer header and find the
// way; a packet socket is given both: its route, its neighbour, the path MTU and the firewall
// are then the business of who sends. They go over a veth to a raw socket, which gets them
// on the sender's CPU: what is said of C is so here too.
//
// AF_PACKET with PACKET_VNET_HDR would take the superframe whole, as one of TCP that begins
// with the outer header; but the kernel looks into what comes with a virtio header
// (SKB_GSO_DODGY), and by that a superframe of IP in IP is one only if it says so
// (SKB_GSO_IPXIP4, ipip_gso_segment), for which a virtio header has no name. It drops the
// packet, and sendmsg says ENOMEM (Linux 6.18).

const (
	segmentSize = 1440    // of TCP payload
	innerHead   = 20 + 20 // IPv4, TCP
	linkHead    = 14 + 20 // Ethernet, outer IPv4
	headSpace   = 128     // for all headers of a message
	wholeSize   = pieces * segmentSize
)

func ipipGroup() group {
	g := group{letter: "E", title: "TCP segments of 1440 bytes as IP in IP into the network: sendmmsg of 45 on a raw socket, and other ways",
		metrics: []metric{
			{name: "CPU ns/packet of the sender", less: true},
			{name: "packets/s"},
			{name: "% received"},
		}}
	for _, w := range []struct {
		name string
		dial func() (int, error)
		open func(fd int) (sender, error)
	}{
		{"raw socket, sendmmsg", dialRaw, func(fd int) (sender, error) { return newRawSend(fd, pieces) }},
		{"raw socket, sendmsg", dialRaw, func(fd int) (sender, error) { return newRawSend(fd, 1) }},
		{"AF_PACKET, sendmmsg", func() (int, error) { return dialPacket("wire") }, newPacketSend},
		{"AF_PACKET, superframes (PACKET_VNET_HDR)", func() (int, error) { return dialPacket("wire", vnet) }, newPacketSuper},
	} {
		r := road{dial: w.dial, listen: listenRaw, size: 20 + innerHead + segmentSize}
		g.ways = append(g.ways, way{w.name, func(ctx context.Context, l *lab, d time.Duration) (sample, error) {
			return l.sent(ctx, d, r, w.open)
		}})
	}
	return g
}

// dialRaw opens a connected raw socket for IPv4 inside, as package underlay has it.
func dialRaw() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_IPIP)
	if err != nil {
		return -1, refused("socket of protocol 4", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(addrB).As4()}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("connect: %w", err)
	}
	return fd, prepare(fd, option{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER"})
}

// vnet has a virtio header in front of each packet.
var vnet = option{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1, "PACKET_VNET_HDR"}

// dialPacket opens a packet socket that sends to a device, and receives nothing.
func dialPacket(dev string, options ...option) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, refused("socket AF_PACKET", err)
	}
	index, err := ifindex(dev)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index})
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("%s: %w", dev, err)
	}
	return fd, prepare(fd, options...)
}

// listenRaw opens the receiving socket.
func listenRaw() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_IPIP)
	if err != nil {
		return -1, refused("socket of protocol 4", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("SO_RCVBUFFORCE: %w", err)
	}
	return fd, nil
}
