package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/wire"
)

func testLab(t *testing.T) *lab {
	t.Helper()
	netns.RequireRoot(t)
	l, err := newLab(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
		nothing(t)
	})
	return l
}

// sendOnce sends with one system call, and returns how many packets went out.
func (l *lab) sendOnce(dial func() (int, error), open func(fd int) (sender, error)) (n int, err error) {
	err = on(l.a, l.cpus[0], func() error {
		fd, err := dial()
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		s, err := open(fd)
		if err != nil {
			return err
		}
		defer s.Close()
		n, err = s.send()
		return err
	})
	return n, err
}

// A superframe with a virtio header is refused for its outer header alone: without that
// the same one goes out.
func TestSuperframeRefused(t *testing.T) {
	l := testLab(t)
	dial := func() (int, error) { return dialPacket("wire", vnet) }
	n, err := l.sendOnce(dial, newPacketSuper)
	// A link that has just come up swallows what it is given, until it has its queue.
	for end := time.Now().Add(2 * time.Second); err == nil && time.Now().Before(end); n, err = l.sendOnce(dial, newPacketSuper) {
		time.Sleep(20 * time.Millisecond)
	}
	if n != 0 || err == nil || err.Error() != "refused: ENOMEM (sendmsg of a superframe)" {
		t.Errorf("IP in IP: %d packets, %v", n, err)
	}
	n, err = l.sendOnce(dial, func(fd int) (sender, error) {
		return newTCPSend(fd, 1, wholeSize, func(b []byte, size int) int {
			putSuper(b, 14)
			putEthernet(b[vnetHeader:])
			return vnetHeader + 14 + putInner(b[vnetHeader+14:], size)
		})
	})
	if n != pieces || err != nil {
		t.Errorf("TCP: %d packets, %v", n, err)
	}
}

// What a raw socket sends and what a packet socket does are the same packets.
func TestSamePackets(t *testing.T) {
	l := testLab(t)
	rx := -1
	if err := on(l.b, l.cpus[1], func() (err error) {
		rx, err = listenRaw()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(rx)
	var came [2][]byte
	for i, way := range []struct {
		dial func() (int, error)
		open func(fd int) (sender, error)
	}{
		{dialRaw, func(fd int) (sender, error) { return newRawSend(fd, pieces) }},
		{func() (int, error) { return dialPacket("wire") }, newPacketSend},
	} {
		if n, err := l.sendOnce(way.dial, way.open); n != pieces || err != nil {
			t.Fatalf("way %d: %d packets, %v", i, n, err)
		}
		for range pieces {
			b := make([]byte, superRoom)
			n, err := unix.Read(rx, b)
			for late := time.Now().Add(5 * time.Second); err == unix.EAGAIN && time.Now().Before(late); n, err = unix.Read(rx, b) {
				if err := wait(rx); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil {
				t.Fatalf("way %d: %v", i, err)
			}
			p, ok := wire.ParseIPv4(b[:n])
			if !ok || n != 1500 || !p.ChecksumOK() {
				t.Fatalf("way %d: %d bytes, % x", i, n, b[:min(n, 20)])
			}
			p.SetID(0)
			p.SetChecksum(0)
			if came[i] != nil && !bytes.Equal(p, came[i]) {
				t.Fatalf("way %d: packets differ", i)
			}
			came[i] = p
		}
	}
	if !bytes.Equal(came[0], came[1]) {
		t.Errorf("% x\n% x", came[0][:60], came[1][:60])
	}
}
