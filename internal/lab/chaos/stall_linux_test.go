package chaos

import (
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/port/porttest"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
)

// A gate is a port whose Write waits while it is shut, as no port should.
type gate struct {
	vswitch.Port
	mu sync.Mutex // held while it is shut
}

func (g *gate) Name() string { return "tap0" }

func (g *gate) Offloads() frame.Offloads { return frame.OffloadAll } // as a TAP

func (g *gate) Writer(w int) frame.Writer { return &gateWriter{g, g.Port.Writer(w)} }

type gateWriter struct {
	g *gate
	frame.Writer
}

func (w *gateWriter) Write(out []frame.Out) error {
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	return w.Writer.Write(out)
}

// A port that waits stalls the worker that writes to it, until the receive buffer of the
// underlay is full and the kernel drops: that is counted, the other direction goes on
// untouched, and what was in the buffer is not lost.
func TestStalledUnderlay(t *testing.T) {
	both(t, func(t *testing.T, fam family) {
		g := new(gate)
		r := newRig(t, fam, config{
			udp:  underlay.UDPConfig{RecvBuffer: 32 << 10},
			wrap: func(p vswitch.Port) vswitch.Port { g.Port = p; return g },
		})
		g.mu.Lock()
		suffer(t, r.ab, r.ba)
		flows(t, time.Second, r.ab)
		g.mu.Unlock()
		flows(t, time.Second, r.ab, r.ba)
		r.books(missing{})
		if n := r.u.Stats().RxOverflow; n == 0 || n != r.ba.sent.Load()-uint64(r.ba.got()) || int(r.ab.sent.Load()) != r.ab.got() {
			t.Errorf("overflow %d; sent %d, got %d; other way: sent %d, got %d", n, r.ba.sent.Load(), r.ba.got(), r.ab.sent.Load(), r.ab.got())
		}
	})
}

// Behind a Buffered the port stalls nobody: its queue is full and says so.
func TestStalledBuffered(t *testing.T) {
	both(t, func(t *testing.T, fam family) {
		g := new(gate)
		var b *port.Buffered
		r := newRig(t, fam, config{
			udp: underlay.UDPConfig{RecvBuffer: 32 << 10},
			wrap: func(p vswitch.Port) vswitch.Port {
				g.Port = p
				b = check.Must(port.NewBuffered(g, &port.BufferedConfig{Queue: 64}))(t)
				return b.Port()
			},
		})
		g.mu.Lock()
		suffer(t, r.ab, r.ba)
		flows(t, time.Second, r.ab)
		g.mu.Unlock()
		flows(t, time.Second, r.ab, r.ba)
		r.books(missing{})
		tap := r.port("tap0")
		full := tap.TxDrops[frame.PortFull]
		if full == 0 || full != b.Stats().Full || full != r.ba.sent.Load()-uint64(r.ba.got()) || r.u.Stats().RxOverflow != 0 {
			t.Errorf("full %d, %+v, overflow %d; sent %d, got %d", full, b.Stats(), r.u.Stats().RxOverflow, r.ba.sent.Load(), r.ba.got())
		}
	})
}

// A TAP that its guest has shut takes nothing: each frame for it is counted, another TAP
// loses none, and the first works again when it is up.
func TestStalledTAP(t *testing.T) {
	both(t, func(t *testing.T, fam family) {
		r := newRig(t, fam, config{})
		c := r.n.Host("c")
		c.Quiet()
		mac := frame.MAC{2, 0, 0, 0, 0xaa, 3}
		second := check.Must(port.OpenTAP("tap1", &port.DeviceConfig{MTU: 1400, MAC: mac, Namespace: c.NS}))(t)
		at := check.Must(r.vsi.Attach(second, 0))(t)
		check.OK(t, r.vsi.FDB().Set(mac, at.Dest(0), 0))
		c.Addr("tap1", "192.168.7.3/24")
		r.b.Neighbour("vx0", "192.168.7.3", mac.String())
		bc := newStream(t, r.b, innerB, c, "192.168.7.3")
		flows(t, 5*time.Second, bc)

		r.a.IP("link", "set", "tap0", "down")
		suffer(t, r.ab, r.ba)
		r.a.Neighbour("tap0", innerB, farMAC) // first, or datagrams would wait for it in the guest
		r.a.Up("tap0")
		flows(t, time.Second, r.ab, r.ba, bc)
		for _, s := range []*stream{r.ab, r.ba, bc} {
			s.stop()
		}
		quiet(r.ab, r.ba, bc)
		if bc.sent.Load() != uint64(bc.got()) {
			t.Errorf("the other port: sent %d, got %d", bc.sent.Load(), bc.got())
		}
		down := r.port("tap0").TxDrops[frame.PortDown]
		lost := r.ba.sent.Load() - uint64(r.ba.got())
		// What the stack had in hand when the device was shut is the guest's.
		check.True(t, down != 0 && lost >= down && lost <= down+20, "lost %d, counted %d", lost, down)
		// While a device goes down it still takes everything, and counts what it drops.
		dropped := r.a.Counter("tap0", "tx_dropped")
		if n := int(r.ab.sent.Load()) - r.ab.got(); n < dropped || n > dropped+20 {
			t.Errorf("the other way: sent %d, got %d, the TAP has dropped %d", r.ab.sent.Load(), r.ab.got(), dropped)
		}
	})
}

// A bad line in front of the TAP, in both directions: what is missing are the frames that
// the line has lost or changed.
func TestFaultyTAP(t *testing.T) {
	both(t, func(t *testing.T, fam family) {
		var f *porttest.Faulty
		r := newRig(t, fam, config{wrap: func(p vswitch.Port) vswitch.Port {
			f = check.Must(porttest.NewFaulty(p, &porttest.FaultyConfig{Seed: 7}))(t)
			return f.Port()
		}})
		// A changed port or protocol would be answered.
		for dev, h := range map[string]interface {
			Run(string, ...string) string
		}{"tap0": r.a, "vx0": r.b} {
			h.Run("nft", "add table ip mute; add chain ip mute x { type filter hook output priority 0; }; add rule ip mute x oifname "+dev+" ip protocol icmp drop")
		}
		bad := porttest.Faults{Loss: .05, Corrupt: .05, Duplicate: .05, Delay: .05, Reorder: .05}
		check.OK(t, f.Set(bad, bad))
		suffer(t, r.ab, r.ba)
		suffer(t, r.ab, r.ba)
		check.OK(t, f.Set(porttest.Faults{}, porttest.Faults{}))
		flows(t, time.Second, r.ab, r.ba)
		r.ab.stop()
		r.ba.stop()
		quiet(r.ab, r.ba)
		st, tap, far := f.Stats(), r.port("tap0"), r.port("vtep")
		t.Logf("%+v; garbage %d, %d", st, r.ab.bad, r.ba.bad)
		for what, x := range map[string][2]int{
			"into the line":           {int(r.ab.sent.Load()), int(st.In.Frames) + r.a.Counter("tap0", "tx_dropped")},
			"out of the line":         {int(st.In.Frames + st.In.Duplicated - st.In.Lost - st.In.Full), int(tap.Rx.Frames)},
			"into the tunnel":         {int(tap.Rx.Frames), total(tap.RxDrops) + total(far.TxDrops) + int(far.Tx.Frames)},
			"on the wire":             {int(far.Tx.Frames), counter(t, r.b, "inet count")},
			"out of the tunnel":       {counter(t, r.a, "inet count"), int(r.u.Stats().RxDatagrams)},
			"into the line, from far": {int(tap.Tx.Frames), int(st.Out.Frames)},
		} {
			check.True(t, x[0] == x[1], "%s: %d and %d", what, x[0], x[1])
		}
		for _, x := range []struct {
			s         *stream
			came      int
			corrupted uint64
			copies    uint64
		}{
			{r.ab, counter(t, r.b, "inet count") + total(tap.RxDrops), st.In.Corrupted, st.In.Duplicated},
			{r.ba, int(st.Out.Frames + st.Out.Duplicated - st.Out.Lost - st.Out.Full - st.Out.Refused), st.Out.Corrupted, st.Out.Duplicated},
		} {
			// A copy of one that was changed is changed too.
			if n := x.came - x.s.got(); n < 0 || n > 2*int(x.corrupted) || x.s.bad > 2*x.corrupted || x.s.copies > x.copies || x.s.copies == 0 || x.s.late == 0 {
				t.Errorf("to %v: %d came, %d got, of these %d copies, %d garbage, %d late; corrupted %d", x.s.to, x.came, x.s.got(), x.s.copies, x.s.bad, x.s.late, x.corrupted)
			}
		}
	})
}
