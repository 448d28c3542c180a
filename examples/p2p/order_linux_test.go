package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/carry"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var orderDuration = flag.Duration("order.duration", time.Second/2, "how long each part of the tests of order sends")

const (
	orderFlows = 16
	orderPort  = 7000
	orderQuiet = 300 * time.Millisecond // after the last packet: what has not come by then is lost
)

// Packets of one flow leave the tunnel in the order they went in, as they do over the
// veth pair alone: two queues at each end, flows both ways with the same ports, so that
// tun steers each by what it last received of the other direction.
//
// Each flow has been there and back before. When tun hears the other direction of a flow
// for the first time it moves the flow to that queue at once, and what waits in the old
// one may be overtaken (Linux 6.18); see TestOrderOfStrangers. So may what waits in p2p when the kernel begins to carry a
// flow, with -datapath kernel.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		rate int // packets a second and flow, 0 = as many as go
	}{{"paced", 2000}, {"blast", 0}} {
		t.Run(c.name, func(t *testing.T) {
			alone := orderOf(t, c.rate, false, true)
			t.Logf("veth alone: %v", alone)
			tunnel := orderOf(t, c.rate, true, true)
			t.Logf("tunnel:     %v", tunnel)
			if alone.received < 1000 || tunnel.received < 1000 {
				t.Fatal("too few were received")
			}
			switch {
			case carry.Kernel():
				if tunnel.most > tunQueue {
					t.Errorf("%d packets of one flow were overtaken, a queue holds %d", tunnel.most, tunQueue)
				}
			case tunnel.reordered > alone.reordered:
				t.Errorf("the tunnel reordered %d of %d packets, the veth pair alone %d of %d",
					tunnel.reordered, tunnel.received, alone.reordered, alone.received)
			}
		})
	}
}

// tunQueue is how many packets wait in a queue of a TAP (its txqueuelen); some more may be
// in the hands of the worker that reads it.
const tunQueue = 1000 + 2*frame.MaxBatch

// Flows whose directions meet under full load may be reordered while tun moves them, once:
// no more than what one queue holds.
func TestOrderOfStrangers(t *testing.T) {
	c := orderOf(t, 0, true, false)
	t.Logf("tunnel: %v", c)
	if c.received < 1000 || c.most > tunQueue {
		t.Errorf("%d packets of one flow were overtaken, a queue holds %d", c.most, tunQueue)
	}
}

// orderOf builds two guests behind bridges, joined by a veth pair or by a tunnel over it,
// and counts what becomes of their flows, which have met before or have not.
func orderOf(t *testing.T, rate int, tunnel, met bool) (sum flowCount) {
	n := netns.New(t)
	hosts := [2]*netns.Host{n.Host("a"), n.Host("b")}
	guests := [2]*netns.Host{n.Host("ga"), n.Host("gb")}
	n.Link(hosts[0], "", hosts[1], "")
	for i, h := range hosts {
		guests[i].Quiet()
		dev, inside := n.Link(guests[i], fmt.Sprintf("192.168.7.%d/24", i+1), h, "")
		guests[i].MTU(dev, 1450)
		outside := "eth0"
		if tunnel {
			h.Addr("eth0", fmt.Sprintf("10.0.0.%d/24", i+1))
			local, remote := fmt.Sprintf("10.0.0.%d", i+1), fmt.Sprintf("10.0.0.%d", 2-i)
			p := start(t, h, "ready dev=vxs0 type=vxlan id=9 local="+local+":4789 mtu=1450",
				"-local", local, "-remote", remote, "-id", "9", "-queues", "2")
			t.Cleanup(func() { p.Stop() })
			outside = "vxs0"
		}
		h.Bridge("br0", inside, outside)
	}
	for i, g := range guests {
		g.Ready()
		hosts[i].Ready()
		far := guests[1-i]
		g.Neighbour("eth0", fmt.Sprintf("192.168.7.%d", 2-i), far.MAC("eth0"))
	}
	guests[0].Ping("192.168.7.2", 2)

	var ends [2][]*flowEnd
	for i, g := range guests {
		g.Do(func() { ends[i] = openFlows(t, i) })
	}
	if met {
		for f := range orderFlows {
			greet(t, ends[0][f], ends[1][f])
		}
	}
	var senders, receivers sync.WaitGroup
	var over atomic.Bool
	all := append(ends[0][:orderFlows:orderFlows], ends[1]...)
	for _, e := range all {
		receivers.Go(func() { e.receive(&over) })
	}
	cpus := processors(t)
	for i := range ends {
		for k, cpu := range cpus {
			var mine []*flowEnd
			for f := k; f < orderFlows; f += len(cpus) {
				mine = append(mine, ends[i][f])
			}
			senders.Go(func() {
				if err := sendFlows(mine, cpu, rate); err != nil {
					t.Error(err)
				}
			})
		}
	}
	senders.Wait()
	over.Store(true)
	receivers.Wait()
	for i := range all {
		e, far := all[i], all[(i+orderFlows)%len(all)]
		if e.err != nil {
			t.Errorf("receiving: %v", e.err)
		}
		e.count.sent = far.next
		e.count.lost = far.next - e.count.received
		sum.add(e.count)
	}
	return sum
}

// A flowCount is what became of packets.
type flowCount struct {
	sent, received, lost int
	reordered            int // came after one that was sent later
	first, last          int // numbers of the first and last of these, of any flow
	flows                int // that have such
	most                 int // of one flow
}

func (c *flowCount) add(x flowCount) {
	c.sent, c.received, c.lost = c.sent+x.sent, c.received+x.received, c.lost+x.lost
	if x.reordered == 0 {
		return
	}
	if c.flows == 0 || x.first < c.first {
		c.first = x.first
	}
	c.last = max(c.last, x.last)
	c.reordered += x.reordered
	c.most = max(c.most, x.reordered)
	c.flows++
}

func (c flowCount) String() string {
	s := fmt.Sprintf("sent %d, received %d, lost %d, reordered %d", c.sent, c.received, c.lost, c.reordered)
	if c.flows > 0 {
		s += fmt.Sprintf(" in %d flows, at most %d in one, numbers %d to %d", c.flows, c.most, c.first, c.last)
	}
	return s
}

// A flowEnd is one guest's end of a flow in both directions.
type flowEnd struct {
	*net.UDPConn
	next  int // number of the next packet to send
	count flowCount
	err   error
}

// openFlows opens the ends of guest i, inside of which it runs.
func openFlows(t *testing.T, i int) (ends []*flowEnd) {
	for f := range orderFlows {
		c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(192, 168, 7, byte(i+1)), Port: orderPort + f},
			&net.UDPAddr{IP: net.IPv4(192, 168, 7, byte(2-i)), Port: orderPort + f})
		must(t, err)
		t.Cleanup(func() { c.Close() })
		raw, err := c.SyscallConn()
		if err == nil {
			raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20) })
		}
		must(t, err)
		ends = append(ends, &flowEnd{UDPConn: c})
	}
	return ends
}

// greet sends one packet there and one back.
func greet(t *testing.T, a, b *flowEnd) {
	t.Helper()
	buf := make([]byte, 64)
	for _, way := range [][2]*flowEnd{{a, b}, {b, a}} {
		if _, err := way[0].Write(buf); err != nil {
			t.Fatal(err)
		}
		way[1].SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := way[1].Read(buf); err != nil {
			t.Fatalf("the first packet of a flow: %v", err)
		}
	}
}

// receive counts until nothing has come for a while after the senders are done.
func (e *flowEnd) receive(over *atomic.Bool) {
	buf := make([]byte, 256)
	highest := -1
	for {
		done := over.Load()
		e.SetReadDeadline(time.Now().Add(orderQuiet))
		n, err := e.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && !done:
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			return
		case err != nil:
			e.err = err
			return
		case n < 8:
			e.err = fmt.Errorf("%d bytes", n)
			return
		}
		number := int(binary.BigEndian.Uint64(buf))
		e.count.received++
		if number < highest {
			if e.count.reordered == 0 {
				e.count.first = number
			}
			e.count.reordered++
			e.count.last = number
		}
		highest = max(highest, number)
	}
}

// sendFlows sends on all ends in turn, from one processor: packets of a socket that moves
// to another may overtake each other in the kernel's queues.
func sendFlows(ends []*flowEnd, cpu, rate int) error {
	runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	buf := make([]byte, 64)
	begin := time.Now()
	for round := 0; ; round++ {
		now := time.Since(begin)
		if now > *orderDuration {
			return nil
		}
		if rate > 0 {
			if due := time.Duration(round) * time.Second / time.Duration(rate); due > now {
				time.Sleep(due - now)
			}
		}
		for _, e := range ends {
			binary.BigEndian.PutUint64(buf, uint64(e.next))
			if _, err := e.Write(buf); errors.Is(err, unix.ENOBUFS) {
				continue
			} else if err != nil {
				return err
			}
			e.next++
		}
	}
}

// processors returns those the process may use.
func processors(t *testing.T) (cpus []int) {
	var set unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &set))
	for cpu := range len(set) * strconv.IntSize {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
