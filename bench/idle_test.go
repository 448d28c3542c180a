package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// 256 idle ports, each with its worker, cost less than 16 MiB, before and after they
// have had traffic: packet memory belongs to those who have packets.
func TestIdlePorts(t *testing.T) {
	const ports, limit = 256, 16 << 20
	before := inUse()
	sw, err := vswitch.New(nil)
	must(t, err)
	vsi, err := sw.VSI(1, nil)
	must(t, err)
	var pipes []*port.Pipe
	for i := range ports {
		p := port.NewPipe(&port.PipeConfig{Name: fmt.Sprint("p", i)})
		if _, err := vsi.Attach(p, 0); err != nil {
			t.Fatal(err)
		}
		pipes = append(pipes, p)
	}
	ended := make(chan struct{})
	go func() { sw.Run(context.Background()); close(ended) }()
	defer func() { sw.Close(); <-ended }()
	idle := inUse() - before

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, p := range pipes { // everybody to everybody
		p.Send(rig.Packet(frame.Broadcast, rig.MAC(0, i), 1500))
		for k, q := range pipes {
			if k != i {
				if _, err := q.Recv(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, p := range pipes {
		drain(p)
	}
	after := inUse() - before
	t.Logf("%d ports: %.1f MiB idle, %.1f MiB idle again after traffic", ports, float64(idle)/(1<<20), float64(after)/(1<<20))
	if idle > limit || after > limit {
		t.Errorf("%d and %d bytes, limit %d", idle, after, limit)
	}
}

func drain(p *port.Pipe) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		_, err := p.Recv(ctx)
		cancel()
		if err != nil {
			return
		}
	}
}

// inUse returns the bytes of heap and stacks in use after two garbage collections.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
