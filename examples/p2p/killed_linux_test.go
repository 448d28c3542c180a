package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A TCP connection with traffic both ways, carried by the kernel over a persistent device, outlives the p2p that is killed under it: when
// another has been started, it goes on where it was, and is carried again.
func TestDatapathKilled(t *testing.T) {
	const carried = 50_000_000 // bytes
	f := families[0]
	a, b := f.peers(t, netns.VXLAN{Keep: true, Args: []string{"noudpcsum"}})
	a.IP("tuntap", "add", "dev", "vxs0", "mode", "tap")
	a.Addr("vxs0", "192.168.7.1/24")
	run := func() *netns.Proc { return f.start(t, a, f.mtu, "-datapath kernel") }
	p := run()
	a.Ping("192.168.7.2", 20)
	both := connect(t, a, b, "192.168.7.2:7000")
	isCarried := func(p *netns.Proc) {
		t.Helper()
		a.Until("both ways are carried", func() bool {
			l := ask(t, p)
			return l.Offload != nil && l.Offload.Flows == 2 && l.Offload.Carried.Bytes > carried
		})
	}
	isCarried(p)

	p.Signal(syscall.SIGKILL)
	if err := p.Wait(); err == nil {
		t.Fatal("p2p has ended by itself")
	}
	killed := time.Now()
	if gone(t, a, "vxs0") {
		t.Fatal("the device has gone")
	}
	time.Sleep(200 * time.Millisecond) // for what was on its way
	was := both.received()
	time.Sleep(100 * time.Millisecond)
	if now := both.received(); now != was {
		t.Fatalf("%v bytes came without p2p", [2]int64{now[0] - was[0], now[1] - was[1]})
	}
	p = run()
	ready := time.Now()
	a.Until("the connection goes on both ways", func() bool { now := both.received(); return now[0] > was[0] && now[1] > was[1] })
	goesOn := time.Now()
	isCarried(p)
	t.Logf("after the kill: ready %v, both ways go on %v, %d bytes are carried %v; longest pause of each way %v",
		ready.Sub(killed), goesOn.Sub(killed), carried, time.Since(killed), both.pauses())
	both.finish()
	l := stop(t, p)
	if all := l.Rx.Bytes + l.Tx.Bytes; l.Offload == nil || float64(l.Offload.Carried.Bytes) < 0.5*float64(all) { // user space carries what waited meanwhile
		t.Errorf("%+v carried of rx %+v, tx %+v", l.Offload, l.Rx, l.Tx)
	}
}

// A duplex is a TCP connection on which both ends send numbers.
type duplex struct {
	t     *testing.T
	ends  [2]*net.TCPConn
	got   [2]atomic.Int64 // bytes received
	pause [2]atomic.Int64 // longest time between two of the calls that received them
	over  atomic.Bool
	all   sync.WaitGroup
}

// connect opens one from a host to an address of another, and has both ends send.
func connect(t *testing.T, a, b *netns.Host, to string) *duplex {
	t.Helper()
	d := &duplex{t: t}
	l := netns.Open(t, b, func() (*net.TCPListener, error) {
		at, err := net.ResolveTCPAddr("tcp4", to)
		if err != nil {
			return nil, err
		}
		return net.ListenTCP("tcp4", at)
	})
	c := netns.Open(t, a, func() (net.Conn, error) { return net.DialTimeout("tcp4", to, netns.Timeout) })
	d.ends[0] = c.(*net.TCPConn)
	l.SetDeadline(time.Now().Add(netns.Timeout))
	var err error
	d.ends[1], err = l.AcceptTCP()
	must(t, err)
	t.Cleanup(func() { d.over.Store(true); d.ends[0].Close(); d.ends[1].Close(); d.all.Wait() })
	for i := range d.ends {
		d.all.Go(func() { d.send(i) })
		d.all.Go(func() {
			if err := d.receive(i); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Errorf("end %d: %v", i, err)
			}
		})
	}
	return d
}

func (d *duplex) send(i int) {
	b := make([]byte, 1<<16)
	for n := uint64(0); !d.over.Load(); {
		for k := 0; k < len(b); k += 8 {
			binary.BigEndian.PutUint64(b[k:], n)
			n++
		}
		if _, err := d.ends[i].Write(b); err != nil {
			if !errors.Is(err, net.ErrClosed) {
				d.t.Errorf("end %d: %v", i, err)
			}
			return
		}
	}
	d.ends[i].CloseWrite()
}

func (d *duplex) receive(i int) error {
	b := make([]byte, 1<<16)
	have, next, last := 0, uint64(0), time.Now()
	for {
		n, err := d.ends[i].Read(b[have:])
		now := time.Now()
		d.pause[i].Store(max(d.pause[i].Load(), int64(now.Sub(last))))
		last = now
		d.got[i].Add(int64(n))
		for have += n; have >= 8 && err == nil; {
			k := 0
			for ; k+8 <= have; k += 8 {
				if x := binary.BigEndian.Uint64(b[k:]); x != next {
					return fmt.Errorf("number %d instead of %d", x, next)
				}
				next++
			}
			have = copy(b, b[k:have])
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (d *duplex) received() [2]int64 { return [2]int64{d.got[0].Load(), d.got[1].Load()} }

func (d *duplex) pauses() string {
	var s []string
	for i := range d.pause {
		s = append(s, time.Duration(d.pause[i].Load()).Round(time.Millisecond).String())
	}
	return strings.Join(s, ", ")
}

// finish ends both ways, when all that was sent has been received.
func (d *duplex) finish() {
	for _, c := range d.ends {
		c.SetDeadline(time.Now().Add(netns.Timeout))
	}
	d.over.Store(true)
	d.all.Wait()
}
