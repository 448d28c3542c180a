package vswitch

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// tenMinutes is how long somebody does his worst.
const tenMinutes = 600

// sink is a port that forgets what it is sent.
type sink struct{ *stub }

func (s sink) Writer(int) frame.Writer   { return s }
func (s sink) Offloads() frame.Offloads  { return frame.OffloadAll }
func (s sink) Readers() []frame.Reader   { return []frame.Reader{s} }
func (s sink) Write([]frame.Out) error   { return nil }
func newSink(name string) sink           { return sink{newStub(name)} }
func (l *lab) sink(name string) (s sink) { s = newSink(name); l.attach(s, AttachConfig{}); return s }

func (l *lab) attach(p Port, cfg AttachConfig) *Attachment {
	return check.Must(l.v.AttachWith(p, 0, &cfg))(l.t)
}

// inSmall is inLab with room for little.
func inSmall(t *testing.T, test func(l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, s: check.Must(New(&Config{Events: 32}))(t), end: make(chan error, 1)}
		l.v = check.Must(l.s.VSI(1, &VSIConfig{MaxMACs: 256}))(t)
		go func() { l.end <- l.s.Run(context.Background()) }()
		defer func() { l.s.Close() }()
		time.Sleep(50 * time.Millisecond) // between two turns of the housekeeping, during which nothing is learned
		test(l)
	})
}

// many returns a batch of frames from n MACs, beginning with the k-th of a port.
func many(port byte, k, n int, dst frame.MAC) (batch [][]byte) {
	for i := range n {
		src := frame.MAC{2, port}
		binary.BigEndian.PutUint32(src[2:], uint32(k+i))
		batch = append(batch, eth(dst, src, 0x88b5))
	}
	return batch
}

// One port floods as much as it can: what others flood goes on as ever.
func TestWorstStorm(t *testing.T) {
	run := func(attack bool) (got int) {
		inSmall(t, func(l *lab) {
			limit := AttachConfig{Storm: Storm{Broadcast: Rate{Packets: 100}}}
			bad, good, o := newSink("bad"), newSink("good"), newStub("o")
			l.attach(bad, limit)
			at := l.attach(good, limit)
			l.attach(o, AttachConfig{})
			for range tenMinutes {
				for range 4 {
					if attack {
						bad.send(many(1, 0, frame.MaxBatch, frame.Broadcast)...)
					}
				}
				good.send(many(2, 0, 50, frame.Broadcast)...)
				for _, x := range o.sent() {
					if x.F.From.Port() == at.Dest(0).Port() {
						got++
					}
				}
				time.Sleep(time.Second)
			}
			if n := l.drops(1)[frame.Storm]; attack && n < 50_000 {
				t.Errorf("%d refused: no attack", n)
			}
		})
		return got
	}
	worst.Kept(t, "storm control", run(false), run(true))
}

// One port makes more events than a reader takes. The reader lists the tables when it is told
// to, and so knows of a MAC elsewhere.
func TestWorstEvents(t *testing.T) {
	run := func(attack bool) (known int) {
		inSmall(t, func(l *lab) {
			bad, good := l.sink("bad"), l.sink("good")
			e := l.s.Events()
			defer e.Close()
			there := map[frame.MAC]bool{}
			for k := range tenMinutes {
				time.Sleep(time.Second)
				good.send(many(2, k, 1, frame.Broadcast)...)
				if attack {
					bad.send(many(1, k*frame.MaxBatch, frame.MaxBatch, mac(1))...)
				}
				for {
					ev, ok, err := e.poll()
					if !ok || err != nil {
						break
					}
					switch ev.Kind {
					case frame.EventOverflow:
						for x := range l.v.FDB().All() {
							there[x.MAC] = true
						}
					case frame.EventMACLearned:
						there[ev.MAC] = true
					}
				}
				if there[frame.MAC(many(2, k, 1, frame.Broadcast)[0][6:])] {
					known++
				}
			}
			if n := l.s.Stats().EventsLost; attack && n < 20_000 {
				t.Errorf("%d lost: no attack", n)
			}
		})
		return known
	}
	worst.Kept(t, "events", run(false), run(true))
}

// One port sends more than a reader of traces takes: all that another sends is traced.
func TestWorstTrace(t *testing.T) {
	run := func(attack bool) (got int) {
		inSmall(t, func(l *lab) {
			bad, good := l.sink("bad"), newSink("good")
			at := l.attach(good, AttachConfig{})
			tr := check.Must(l.s.Trace(&TraceConfig{Buffer: 64}))(t)
			defer tr.Close()
			for range tenMinutes {
				for range 4 {
					if attack {
						bad.send(many(1, 0, frame.MaxBatch, mac(1))...)
					}
				}
				good.send(many(2, 0, 20, mac(1))...)
				for tr.ring.Len() > 0 {
					if check.Must(tr.Next(context.Background()))(t).From == at.Dest(0) {
						got++
					}
				}
			}
			if n := tr.Lost(); attack && n < 100_000 {
				t.Errorf("%d lost: no attack", n)
			}
		})
		return got
	}
	worst.Kept(t, "traces", run(false), run(true))
}
