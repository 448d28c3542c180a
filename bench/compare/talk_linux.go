package main

import (
	"encoding/binary"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// packetSocket opens a packet socket of a device, which receives frames of an EtherType, none for 0.
func packetSocket(dev string, etherType uint16) (*os.File, error) {
	ifi, err := net.InterfaceByName(dev)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "packet socket")
	order := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType))
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: order, Ifindex: ifi.Index}); err != nil {
		f.Close()
		return nil, os.NewSyscallError("bind", err)
	}
	return f, nil
}

// talk sends the frames of a talker out of a device, as blast does.
func talk(dev string, k talker, d time.Duration, pps float64) (s sent, err error) {
	f, err := packetSocket(dev, 0)
	if err != nil {
		return s, err
	}
	defer f.Close()
	t := newTrain(talkHead + talkSize)
	for _, b := range t.bufs {
		k.fixed(b)
	}
	return t.send(f, talkHead, k.head(), d, pps)
}

// hear opens a socket for what a talker sends to hosts behind a device, to any MAC.
func hear(dev string) (*os.File, error) {
	f, err := packetSocket(dev, unix.ETH_P_IP)
	if err == nil {
		err = deepen(f)
	}
	return f, err
}

// poke has p2p print its statistics.
func poke(pid int) error { return unix.Kill(pid, unix.SIGUSR1) }
