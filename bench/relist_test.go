package bench

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// Relist measures the time of a frame from one host to another, one at a time, while a control plane replaces 100,000 rows of
// MACs again and again, each at another VTEP than before, and reads all that there is as events. Beside it, with nothing
// else to do, and with a goroutine that only computes: the machine's own pauses.
func BenchmarkRelist(b *testing.B) {
	const macs = 100_000
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	n, err := node.New(&node.Options{Owners: []string{"evpn"}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return wire.Listen(t.AddrPort(), nil) }})
	must(b, err)
	must(b, n.Apply(&node.Config{
		Tunnels:  []node.Tunnel{{Config: vtep.Config{Name: "vx"}, Local: netip.MustParseAddr("192.0.2.1")}},
		Segments: []node.Segment{{VNI: 100, Tunnel: "vx"}},
	}))
	seg, err := n.Segment(100, nil)
	must(b, err)
	near, far := port.NewPipe(&port.PipeConfig{Name: "near"}), port.NewPipe(&port.PipeConfig{Name: "far"})
	must(b, seg.Add(near, nil))
	must(b, seg.Add(far, nil))
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { n.Run(ctx) })
	defer ended.Wait()
	defer cancel()
	must(b, far.Send([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x02\x88\xb5hello")))
	_, err = near.Recv(ctx)
	must(b, err)

	rows := func(round int) []control.Row {
		list := make([]control.Row, macs)
		for i := range list {
			list[i] = control.MAC{VNI: 100, MAC: frame.MAC{2, 1, byte(round >> 8), byte(i >> 16), byte(i >> 8), byte(i)},
				VTEP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 3, byte(1 + (i+round)%200)}), 0)}
		}
		return list
	}
	var relists atomic.Int64
	for _, c := range []struct {
		name string
		work func(round int)
	}{
		{"idle", nil},
		{"computing", func(int) {
			for end, x := time.Now().Add(100*time.Millisecond), 1; time.Now().Before(end); x *= 3 {
			}
		}},
		{"relist", func(round int) {
			must(b, n.Program("evpn", control.Update{Snapshot: true, Add: rows(round & 1)}))
			for range n.Switch().State() {
			}
			relists.Add(1)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for round := 0; c.work != nil; round++ {
					select {
					case <-stop:
						return
					default:
						c.work(round)
					}
				}
			}()
			relists.Store(0)
			var took []time.Duration
			for range b.N {
				for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
					start := time.Now()
					must(b, near.Send([]byte("\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x88\xb5hello")))
					_, err := far.Recv(ctx)
					must(b, err)
					took = append(took, time.Since(start))
				}
			}
			close(stop)
			<-done
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "us-median")
			b.ReportMetric(float64(took[len(took)*9999/10000].Nanoseconds())/1e3, "us-99.99%")
			b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e6, "ms-longest")
			b.ReportMetric(float64(relists.Load())/float64(b.N), "relists")
		})
	}
}
