package metrics

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// Scrapes while frames pass, peers are learned, and ports and VSIs come and go: no scrape
// fails, and no counter of what stays goes back.
func TestScrapeUnderTraffic(t *testing.T) {
	network := memory.NewNetwork(nil)
	defer network.Close()
	u := must(network.Listen(netip.MustParseAddrPort("10.0.0.1:4789"), nil))(t)
	v := must(vtep.New(nil, u))(t)
	sw := must(vswitch.New(nil))(t)
	far := must(vtep.New(nil, must(network.Listen(netip.MustParseAddrPort("10.0.0.2:4789"), nil))(t)))(t)
	defer far.Close()
	toUs := must(far.AddPeer(netip.MustParseAddrPort("10.0.0.1:4789")))(t)
	vsi := must(sw.VSI(100, nil))(t)
	must(vsi.Attach(v, 100))(t)
	host := port.NewPipe(&port.PipeConfig{Name: "host"})
	must(vsi.Attach(host, 0))(t)

	var sources sync.Mutex
	vteps := map[string]*vtep.VTEP{"vtep": v}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(New(&Config{Switch: sw, Sources: func() Sources {
		sources.Lock()
		defer sources.Unlock()
		return Sources{VTEPs: vteps, Underlays: map[string]Underlay{"v4": u}}
	}}))

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { sw.Run(ctx) })
	wg.Go(func() { // from the tunnel
		w := far.Writer(0)
		for i := uint64(0); ctx.Err() == nil; i++ {
			f := frame.Make(flow(2, i))
			w.Write([]frame.Out{{F: &f, Peer: toUs, Tag: 100}})
			time.Sleep(10 * time.Microsecond)
		}
	})
	wg.Go(func() { // into it
		for i := uint64(0); ctx.Err() == nil; i++ {
			b := flow(1, i)
			if i%4 == 0 {
				b[6] |= 1 // dropped: a source that is a group
			}
			host.Send(b)
			time.Sleep(10 * time.Microsecond)
		}
	})
	wg.Go(func() { // everything else changes
		for i := 0; ctx.Err() == nil; i++ {
			other, err := sw.VSI(frame.VNI(200+i%3), nil)
			if err != nil {
				return // closed
			}
			p := port.NewPipe(nil)
			if a, err := other.Attach(p, 0); err == nil && i%2 == 0 {
				a.Detach()
			}
			other.Delete()
			sources.Lock()
			vteps = map[string]*vtep.VTEP{"vtep": v, fmt.Sprintf("far%d", i%2): far}
			sources.Unlock()
		}
	})
	defer wg.Wait()
	defer cancel()

	var scrapes sync.WaitGroup
	for range 3 {
		scrapes.Go(func() {
			last := map[string]float64{}
			for range 30 {
				list, err := r.Gather()
				if err != nil {
					t.Error(err)
					return
				}
				for _, f := range list {
					for _, m := range f.Metric {
						key := f.GetName() + fmt.Sprint(m.Label)
						if n := m.Counter.GetValue(); stays(m.Label) {
							if n < last[key] {
								t.Errorf("%s went from %v to %v", key, last[key], n)
							}
							last[key] = n
						}
					}
				}
				time.Sleep(3 * time.Millisecond)
			}
			moved := 0
			for _, n := range last {
				if n > 0 {
					moved++
				}
			}
			if moved < 10 {
				t.Errorf("%d counters moved", moved)
			}
		})
	}
	scrapes.Wait()
}

// flow is the i-th of the frames that a side sends, from one of 64 hosts to another.
func flow(side byte, i uint64) []byte {
	b := make([]byte, 100)
	src, dst := frame.MACFrom(0x020000000000|uint64(side)<<8|i&63), frame.MACFrom(0x020000000000|uint64(3-side)<<8|i*7&63)
	copy(b, dst[:])
	copy(b[6:], src[:])
	b[12], b[13] = 0x88, 0xb5
	return b
}

// stays reports whether labels are of what is there all the time.
func stays[L interface {
	GetName() string
	GetValue() string
}](labels []L) bool {
	for _, l := range labels {
		switch l.GetName() + "=" + l.GetValue() {
		case "port=vtep", "port=host", "vni=100", "vtep=vtep", "underlay=v4":
			return true
		}
	}
	return false
}

// A scrape of 10,000 VNIs in a tunnel.
func TestManyVNIs(t *testing.T) {
	vnis := 10_000
	if raceEnabled {
		vnis = 2000
	}
	sw := must(vswitch.New(nil))(t)
	defer sw.Close()
	net := memory.NewNetwork(nil)
	defer net.Close()
	u := must(net.Listen(netip.MustParseAddrPort("192.0.2.1:4789"), nil))(t)
	tunnel := must(vtep.New(nil, u))(t)
	start := time.Now()
	for i := range frame.VNI(vnis) {
		v := must(sw.VSI(1+i, nil))(t)
		must(v.Attach(tunnel, 1+uint32(i)))(t)
	}
	t.Logf("%d VSIs made in %v", vnis, time.Since(start))
	r := prometheus.NewRegistry()
	r.MustRegister(New(&Config{Switch: sw}))
	for range 3 {
		start = time.Now()
		list := must(r.Gather())(t)
		gathered := time.Since(start)
		text := new(written)
		samples := 0
		for _, f := range list {
			samples += len(f.Metric)
			must(expfmt.MetricFamilyToText(text, f))(t)
		}
		took := time.Since(start)
		t.Logf("%d samples, %d bytes: %v, of that gathered in %v", samples, *text, took, gathered)
		if want := (21+4)*vnis + 27 + 14; samples != want {
			t.Errorf("%d samples, want %d", samples, want)
		}
		if took > 30*time.Second { // half a second is usual
			t.Errorf("a scrape took %v", took)
		}
	}
}

type written int

func (w *written) Write(b []byte) (int, error) { *w += written(len(b)); return len(b), nil }
