package vswitch

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A judge lets packets to one port pass, and all that have no Tuple.
type judge struct {
	mu      sync.Mutex
	port    uint16
	carried frame.Count
	watched map[int]func()
	n       int
}

func (j *judge) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t, ok := frame.TupleOf(f.Bytes()); ok && t.DstPort != j.port {
		return frame.Drop(frame.Policy)
	}
	return frame.Continue
}

func (j *judge) Judge(_, _ frame.MAC, t frame.Tuple) (func(frame.Count), bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.count, t.DstPort == j.port
}

func (j *judge) count(n frame.Count) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.carried.Frames += n.Frames
	j.carried.Bytes += n.Bytes
}

func (j *judge) Watch(f func()) func() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.watched == nil {
		j.watched = map[int]func(){}
	}
	j.n++
	n := j.n
	j.watched[n] = f
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.watched, n)
	}
}

func (j *judge) set(port uint16) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.port = port
	for _, f := range j.watched {
		f()
	}
}

func (j *judge) watchers() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.watched)
}

// udp returns a frame with a UDP packet.
func udp(dst, src frame.MAC, sport, dport uint16) []byte {
	b := make([]byte, 28)
	copy(b, []byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(b[20:], sport)
	binary.BigEndian.PutUint16(b[22:], dport)
	return eth(dst, src, 0x800, b...)
}

// TestHintsOfTuples: where Judges look at packets, what is hinted are the tuples of those that pass; packets without one are not.
func TestHintsOfTuples(t *testing.T) {
	for _, where := range []string{"in", "out", "chain", "chain with another"} {
		t.Run(where, func(t *testing.T) {
			withOffload(t, func(l *lab, o *told) {
				a, atA := l.port("a", 0)
				b, atB := l.port("b", 0)
				a.send(eth(frame.Broadcast, mac(1), 0x800))
				b.send(eth(frame.Broadcast, mac(2), 0x800))
				j, hinted := &judge{port: 53}, true
				switch where {
				case "in":
					check.OK(t, atA.Configure(AttachConfig{Slots: Slots{Ingress: j}}))
				case "out":
					check.OK(t, atB.Configure(AttachConfig{Slots: Slots{Egress: j}}))
				case "chain":
					check.OK(t, atA.Configure(AttachConfig{Slots: Slots{Ingress: Chain(j, Chain(j))}}))
				default:
					check.OK(t, atA.Configure(AttachConfig{Slots: Slots{Ingress: Chain(j, say(frame.Continue))}}))
					hinted = false
				}
				fragment := udp(mac(2), mac(1), 4000, 53)
				fragment[20] = 0x20
				ping := udp(mac(2), mac(1), 0x800, 0)
				ping[23] = 1
				for i := range 16 {
					binary.BigEndian.PutUint16(ping[36:], uint16(i)) // the checksum
					a.send(udp(mac(2), mac(1), 4000, 53), udp(mac(2), mac(1), 4000, 54), fragment, eth(mac(2), mac(1), 0x800), ping)
				}
				got := map[string]int{}
				for _, h := range o.hints {
					got[h.Tuple.String()]++
				}
				const dns, other, echo = "udp 10.0.0.1:4000 10.0.0.2:53", "udp 10.0.0.1:4000 10.0.0.2:54", "icmp 10.0.0.1 10.0.0.2 8/0"
				denied := 0 // a worker does not know what the stage at the way out will say
				if where == "out" {
					denied = 2
				}
				if hinted && (got[dns] < 2 || got[other] != denied || got[echo] != denied || got[""] != 0) || !hinted && len(got) > 0 {
					t.Errorf("hinted %v", got)
				}
				j.set(0x800)
				o.hints = nil
				for i := range 16 {
					binary.BigEndian.PutUint16(ping[36:], uint16(i))
					a.send(ping)
				}
				if hinted && (len(o.hints) != 2 || o.hints[0].Tuple.String() != echo) {
					t.Errorf("hinted %v", o.hints)
				}
			})
		})
	}
}

// TestFlowOfTuple: a Flow is of a tuple where a Judge looks at it, holds until that says otherwise, and is counted there.
func TestFlowOfTuple(t *testing.T) {
	withOffload(t, func(l *lab, o *told) {
		a, atA := l.port("a", 0)
		b, atB := l.port("b", 0)
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		b.send(eth(frame.Broadcast, mac(2), 0x800))
		p := Pair{From: atA.Dest(0), Src: mac(1), Dst: mac(2)}
		p.Tuple, _ = frame.TupleOf(udp(mac(2), mac(1), 4000, 53))
		all := p
		all.Tuple = frame.Tuple{}
		if f := check.Must(l.s.Flow(p))(t); f.Pair != all {
			t.Errorf("no stage looks at the tuple of %+v", f.Pair)
		}
		in, out := &judge{port: 53}, &judge{port: 53}
		check.OK(t, atA.Configure(AttachConfig{Slots: Slots{Ingress: in}}))
		check.OK(t, atB.Configure(AttachConfig{Slots: Slots{Egress: Chain(out, out)}}))
		f := check.Must(l.s.Flow(p))(t)
		check.Equal(t, "pair", f.Pair, p)
		_, err := l.s.Flow(all)
		check.ErrorIs(t, "of all packets", err, ErrStage)
		l.s.Carried(&f, frame.Count{Frames: 3, Bytes: 300})
		check.Equal(t, "carried in", in.carried, frame.Count{Frames: 3, Bytes: 300})
		check.Equal(t, "carried out", out.carried, frame.Count{Frames: 6, Bytes: 600}) // it is there twice
		for _, j := range []*judge{in, out} {
			check.Equal(t, "watchers", j.watchers(), 1)
			o.all = 0
			j.set(54)
			check.Equal(t, "told", o.all, 1)
			_, err = l.s.Flow(p)
			check.ErrorIs(t, "after a change", err, ErrStage)
			j.set(53)
		}
		check.Must(l.s.Flow(p))(t)

		// A stage that has left is not watched any more; one that stays is.
		check.OK(t, atA.Configure(AttachConfig{}))
		time.Sleep(2 * time.Second)
		check.Equal(t, "watchers of the stage that left", in.watchers(), 0)
		check.Equal(t, "watchers of the other", out.watchers(), 1)
		check.OK(t, l.s.SetOffload(nil))
		check.Equal(t, "watchers without an Offload", out.watchers(), 0)
	})
}

func TestHintAllocatesNothing(t *testing.T) {
	w := &worker{offload: hinted(0)}
	for _, b := range [][]byte{udp(mac(2), mac(1), 4000, 53), eth(mac(2), mac(1), typeIPv6, append([]byte{0x60, 0, 0, 0, 0, 8, 17}, make([]byte, 41)...)...)} {
		f := frame.Make(b)
		for _, l := range []look{atPair, atTuple} {
			c, e := &circuit{enters: l}, &circuit{}
			w.hint(&f, c, e) // makes the table
			check.Equal(t, "allocations", testing.AllocsPerRun(100, func() { w.hint(&f, c, e) }), 0)
			w.circuit, w.arrival.kept = &circuit{port: &port{}}, true
			check.Equal(t, "allocations of routed", testing.AllocsPerRun(100, func() { w.hintRouted(&f, e) }), 0)
		}
	}
}

// hinted is an Offload that forgets.
type hinted int

func (hinted) Hint(Pair)                    {}
func (hinted) Changed(frame.VNI, frame.MAC) {}
func (hinted) Settle()                      {}
