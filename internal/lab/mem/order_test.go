package mem

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

const (
	orderQueues = 4
	orderFlows  = 32
	orderEach   = 300 // frames of a flow, each way
	orderWindow = 64  // frames of a flow that may be under way: none is lost
	orderVNI    = 100
)

// A spreader is a port of several queues: a Pipe for each. A flow comes in through one of
// them; out of the switch worker w writes to queue w mod n.
type spreader struct{ pipes []*port.Pipe }

func newSpreader() *spreader {
	p := &spreader{}
	for range orderQueues {
		p.pipes = append(p.pipes, port.NewPipe(&port.PipeConfig{Queue: 2 * orderFlows * orderWindow}))
	}
	return p
}

func (p *spreader) Readers() (rs []frame.Reader) {
	for _, q := range p.pipes {
		rs = append(rs, q.Readers()...)
	}
	return rs
}

func (p *spreader) Writer(w int) frame.Writer { return p.pipes[w%len(p.pipes)].Writer(w) }
func (p *spreader) MTU(peer uint16) int       { return p.pipes[0].MTU(peer) }

func (p *spreader) Close() error {
	for _, q := range p.pipes {
		q.Close()
	}
	return nil
}

// An orderEnd is a switch with one VTEP and one spreader.
type orderEnd struct {
	*spreader
	sw   *vswitch.Switch
	next [orderFlows]chan uint32 // of each flow, the numbers that have arrived
}

func newOrderEnd(t *testing.T, n *memory.Network, addr, peer string) *orderEnd {
	t.Helper()
	must := func(err error) {
		if t.Helper(); err != nil {
			t.Fatal(err)
		}
	}
	u, err := n.Listen(netip.AddrPortFrom(netip.MustParseAddr(addr), encap.VXLANPort),
		&memory.Config{Queues: orderQueues, Inbox: 2 * orderFlows * orderWindow})
	must(err)
	v, err := vtep.New(nil, u)
	must(err)
	e := &orderEnd{spreader: newSpreader()}
	for f := range e.next {
		e.next[f] = make(chan uint32, orderWindow)
	}
	e.sw, err = vswitch.New(nil)
	must(err)
	vsi, err := e.sw.VSI(orderVNI, nil)
	must(err)
	_, err = vsi.Attach(v, orderVNI)
	must(err)
	must(v.SetFlood(orderVNI, netip.AddrPortFrom(netip.MustParseAddr(peer), 0)))
	_, err = vsi.Attach(e.spreader, 0)
	must(err)
	ran := make(chan struct{})
	go func() { defer close(ran); e.sw.Run(context.Background()) }()
	t.Cleanup(func() { e.sw.Close(); <-ran })
	return e
}

// orderFrame is frame number i of a flow from one side to the other.
func orderFrame(side, flow int, i uint32) []byte {
	mac := func(side int) frame.MAC { return frame.MACFrom(0x020000000000 | uint64(side)<<16 | uint64(flow)) }
	p := make([]byte, 28, 32)
	p[0], p[8], p[9] = 0x45, 64, 17
	copy(p[12:], []byte{192, 168, byte(side), byte(flow), 192, 168, byte(1 - side), byte(flow)})
	binary.BigEndian.PutUint16(p[2:], 32)
	binary.BigEndian.PutUint16(p[20:], uint16(7000+flow))
	binary.BigEndian.PutUint16(p[22:], uint16(7000+flow))
	binary.BigEndian.PutUint16(p[24:], 12)
	return Ethernet(mac(1-side), mac(side), 0x0800, binary.BigEndian.AppendUint32(p, i))
}

// collect hands the numbers that come out of one queue to their flows, and returns how
// many there were.
func (e *orderEnd) collect(ctx context.Context, t *testing.T, q *port.Pipe) (n int) {
	for ; ; n++ {
		b, err := q.Recv(context.Background())
		if errors.Is(err, net.ErrClosed) {
			return n
		}
		if err != nil || len(b) < 46 {
			t.Errorf("received %x, %v", b, err)
			return n
		}
		flow := int(binary.BigEndian.Uint16(b[36:])) - 7000
		if flow < 0 || flow >= orderFlows {
			t.Errorf("received %x", b)
			return n
		}
		select {
		case e.next[flow] <- binary.BigEndian.Uint32(b[42:]):
		case <-ctx.Done():
			return n
		}
	}
}

// Frames of a flow stay in order, exactly, through two switches with four queues at the
// port and four at the underlay, all flows both ways at the same time. What each flow has
// under way is bounded by its far end, so none is lost.
func TestOrder(t *testing.T) {
	n := memory.NewNetwork(nil)
	t.Cleanup(func() { n.Close() })
	ends := [2]*orderEnd{newOrderEnd(t, n, "10.0.0.1", "10.0.0.2"), newOrderEnd(t, n, "10.0.0.2", "10.0.0.1")}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var collectors, flows sync.WaitGroup
	var used atomic.Int32 // queues that frames came out of
	for _, e := range ends {
		for _, q := range e.pipes {
			collectors.Go(func() {
				if e.collect(ctx, t, q) > 0 {
					used.Add(1)
				}
			})
		}
	}
	for side, e := range ends {
		for f := range orderFlows {
			q := e.pipes[f%orderQueues]
			flows.Go(func() {
				failed := true
				defer func() {
					if failed {
						cancel() // the others need not wait
					}
				}()
				sent := uint32(0)
				for i := range uint32(orderEach) {
					for ; sent < orderEach && sent-i < orderWindow; sent++ {
						if err := q.Send(orderFrame(side, f, sent)); err != nil {
							t.Errorf("side %d, flow %d: frame %d: %v", side, f, sent, err)
							return
						}
					}
					select {
					case got := <-ends[1-side].next[f]:
						if got != i {
							t.Errorf("side %d, flow %d: frame %d, want %d", side, f, got, i)
							return
						}
					case <-ctx.Done():
						t.Errorf("side %d, flow %d: no frame %d: %v", side, f, i, ctx.Err())
						return
					}
				}
				failed = false
			})
		}
	}
	flows.Wait()
	for _, e := range ends {
		e.sw.Close()
	}
	collectors.Wait()
	if used.Load() < 4 {
		t.Errorf("frames came out of %d queues of %d", used.Load(), 2*orderQueues)
	}
}
