package vswitch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"slices"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// An Offload carries frames past the switch, as the switch has decided about others of the same two hosts; package offload has one.
// The switch hints which pairs of hosts are busy, says what the decision about a pair is, and says when decisions change.
type Offload interface {
	// Hint says that frames of a pair keep coming, and that nothing but what is in the Pair decided about them. Workers call it, so
	// it must not block or allocate. A pair is hinted again as long as its frames come.
	Hint(p Pair)

	// Changed says that decisions about frames from or to a MAC of a segment are void, or with the zero MAC all decisions.
	// It is called after the change, and with locks held: it must not block or call the switch.
	Changed(vni frame.VNI, mac frame.MAC)

	// Settle returns when no frame is on its way any more by a decision that was void before the call, and the frames of
	// such decisions have been counted. It may call Carried but no other method of the switch.
	Settle()
}

// A Pair is two hosts whose frames enter in one place, and where stages look at packets, those of their packets with one Tuple. The
// second may be the gateway.
type Pair struct {
	From     frame.Dest // port, or peer behind a tunnel
	Tag      uint32     // of the attachment: VLAN or VNI
	Src, Dst frame.MAC
	Tuple    frame.Tuple // zero: all packets; without a protocol: all between the addresses
}

// A Flow is the decision about the frames of a pair: to forward them to one member of the segment, or to route them to one of another.
// It holds for every frame with a unicast IPv4 or IPv6 packet and without a VLAN tag beside that of the attachment, but not for ND
// messages; if Pair has a Tuple, for those of which frame.TupleOf returns it, or of which it has the addresses. They leave with the
// tag of the other attachment, and with the priority of the tag that they came with, 0 if they had none. Longer frames than MTU are
// for the switch to decide.
//
// Routed frames leave with the MACs of Hop, and with a TTL or hop limit that is less by one. Those with IP options, with a wrong
// header, or whose TTL is 1 or 0 are for the switch to decide.
type Flow struct {
	Pair    // without a Tuple if no stage looks at it, or without its ports
	VNI     frame.VNI
	Hop     frame.Hop // of routed frames
	To      frame.Dest
	OutTag  uint32
	In, Out Port
	MTU     int // longest frame, from the destination MAC on, without VLAN tag; of a superframe each segment

	in, out *circuit
	carried []func(frame.Count) // of Judges and the FIB
}

// Why a pair has no [Flow].
var (
	ErrNoAttachment = errors.New("no-attachment") // the port has left the segment
	ErrUnknownMAC   = errors.New("unknown-mac")   // the source or the destination is not in the FDB, or elsewhere and not there to stay
	ErrStage        = errors.New("stage")         // a stage inspects the frames, and is no Judge or has not passed the Tuple
	ErrWatched      = errors.New("watched")       // frames are captured or traced
	ErrDropped      = errors.New("dropped")       // the switch does not forward the frames
	ErrGateway      = errors.New("gateway")       // they are for the switch itself, or slot Gateway is no FIB, or routes them elsewhere than to a known host
	ErrTag          = errors.New("tag")           // an attachment adds something: a group policy ID, or a service tag
)

// ErrOffload is returned by SetOffload if the switch has an Offload: it would not be told of changes any more.
var ErrOffload = errors.New("there is an Offload already")

// SetOffload has o carry frames, or with nil nobody, once the Offload before carries none. There is none at first.
func (s *Switch) SetOffload(o Offload) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("vswitch: SetOffload: %w", net.ErrClosed)
	}
	if o == nil {
		s.gens.Watch(nil)
		s.offload.Store(nil)
		s.watchOnly(nil, nil)
		return nil
	}
	if s.offload.Load() != nil {
		return fmt.Errorf("vswitch: SetOffload: %w", ErrOffload)
	}
	s.offload.Store(&o)
	s.gens.Watch(o.Changed)
	return nil
}

// SetWatched says that somebody sees all frames at the ports or the underlays, as a capture does, or sees them no more. No pair has
// a Flow until everybody who said the first has said the second.
func (s *Switch) SetWatched(on bool) {
	if !on {
		s.watched.Add(-1)
		return
	}
	s.watched.Add(1)
	s.changed()
}

// changed voids all decisions that the Offload knows.
func (s *Switch) changed() { s.rerouted(frame.MAC{}) }

// Flow returns the decision about a pair. It is what decide does, without a frame and without learning: it holds until
// Offload.Changed is called. The error is one of ErrNoAttachment and those beside it.
func (s *Switch) Flow(p Pair) (Flow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := Flow{Pair: p}
	c, err := s.entrance(&f)
	if err != nil {
		return f, err
	}
	x := frame.Make(pairFrame(p))
	x.From, x.VNI, x.Tunnel = p.From, c.vsi.vni, c.port.tunnel != nil
	from, l := c, c.enters
	switch d, known := c.vsi.fdb.Lookup(p.Dst); {
	case !known:
		return f, ErrUnknownMAC
	case d.Port() == 0 && d != frame.Filter:
		if from, l, err = s.route(c, &f, &x); err != nil {
			return f, err
		}
	}
	v, e := from.egress(&x, &frame.At{Tick: s.Tick()})
	dst, src := frame.MAC(x.Bytes()), frame.MAC(x.Bytes()[6:])
	switch {
	case e == nil:
		return f, ErrDropped
	case e.service():
		return f, ErrTag
	case !s.passes(e.slots.Egress, &f, src, dst):
		return f, ErrStage
	case e.port.tunnel != nil && v.Dest().Peer() == 0:
		return f, ErrDropped // a flood list is no host
	}
	f.VNI, f.To, f.OutTag, f.In, f.Out = c.vsi.vni, v.Dest(), e.tag, c.port.p, e.port.p
	f.MTU = e.longest(&x, f.To.Peer())
	f.in, f.out = c, e
	switch max(l, e.leaves) {
	case atPair:
		f.Tuple = frame.Tuple{}
	case atHosts:
		f.Tuple = f.Tuple.Hosts()
	}
	return f, nil
}

// entrance returns the attachment where the frames of f enter, or why nothing is decided for all of them, wherever they go. s.mu is held.
func (s *Switch) entrance(f *Flow) (*circuit, error) {
	ports, n := *s.ports.Load(), int(f.From.Port())
	if n == 0 || n >= len(ports) || ports[n] == nil {
		return nil, ErrNoAttachment
	}
	c, ok := ports[n].circuits.Load(tagKey(f.Tag))
	switch {
	case !ok:
		return nil, ErrNoAttachment
	case c.port.of.matching.Load() != nil: // which frames are whose, its Matchers say
		return nil, ErrStage
	case !f.Src.IsHost() || !f.Dst.IsHost():
		return nil, ErrDropped
	case s.watched.Load() > 0 || s.trace.Load() != nil || s.tap.Load() != nil:
		return nil, ErrWatched
	case c.gbp != 0 || c.service():
		return nil, ErrTag
	case !s.passes(c.slots.Ingress, f, f.Src, f.Dst):
		return nil, ErrStage
	}
	if o := c.vsi.fdb.Check(f.Src, f.From); o != fdb.Known && o != fdb.Kept && (c.learn || o != fdb.New) {
		return nil, ErrUnknownMAC
	}
	if c.locked && !c.vsi.fdb.Pinned(f.Src, f.From) {
		return nil, ErrDropped
	}
	return c, nil
}

// service reports whether the frames of the attachment have a service tag.
func (c *circuit) service() bool { return !c.port.byVNI && c.tag&frame.ServiceTag != 0 }

// passes asks the Judges of a slot about a flow, whose frames have these MACs there. Whatever they say holds until they call
// s.changed. s.mu is held.
func (s *Switch) passes(x Stage, f *Flow, src, dst frame.MAC) bool {
	if c, ok := x.(chain); ok {
		return !slices.ContainsFunc(c, func(x Stage) bool { return !s.passes(x, f, src, dst) })
	}
	if x == nil {
		return true
	}
	if lookOf(x) != atTuple || f.Tuple.Protocol == 0 {
		return false
	}
	j := x.(Judge)
	if s.judges[j] == nil {
		s.judges[j] = j.Watch(s.changed) // before it is asked
	}
	carried, pass := j.Judge(src, dst, f.Tuple)
	if carried != nil {
		f.carried = append(f.carried, carried)
	}
	return pass
}

// watchOnly ends the watching of other stages than these. s.mu is held.
func (s *Switch) watchOnly(judges map[Judge]struct{}, fibs map[FIB]struct{}) {
	stopOthers(s.judges, judges)
	stopOthers(s.fibs, fibs)
}

func stopOthers[T comparable](watched map[T]func(), those map[T]struct{}) {
	for x, stop := range watched {
		if _, ok := those[x]; !ok {
			stop()
			delete(watched, x)
		}
	}
}

// pairFrame returns the shortest frame of a pair.
func pairFrame(p Pair) []byte {
	b := make([]byte, ethLen+20)
	copy(b, p.Dst[:])
	copy(b[6:], p.Src[:])
	binary.BigEndian.PutUint16(b[macsLen:], typeIPv4)
	return b
}

// Carried counts frames that the Offload has carried by a flow, in all counters that the switch has for them, and has the source
// MAC seen now. n has the frames as they entered, without VLAN tags: a superframe is one.
func (s *Switch) Carried(f *Flow, n frame.Count) {
	in := n.Bytes
	if f.Tag != 0 && !f.in.port.byVNI {
		in += vlanLen * n.Frames // counted at the port
	}
	p := f.in.port.of
	rx := p.carried.Load()
	if rx == nil {
		rx = p.rx.join()
		if !p.carried.CompareAndSwap(nil, rx) {
			p.rx.leave(rx)
			rx = p.carried.Load()
		}
	}
	rx.add(cFrames, n.Frames)
	rx.add(cBytes, in)
	rx.add(cForwarded, n.Frames)
	f.in.tally.rxFrames.Add(n.Frames)
	f.in.tally.rxBytes.Add(in)
	f.out.tally.txFrames.Add(n.Frames)
	f.out.tally.txBytes.Add(n.Bytes)
	for _, carried := range f.carried {
		carried(n)
	}
	if f.in.learn {
		f.in.vsi.fdb.Touch(f.Src, f.From, s.Tick())
	}
}

// hintAt is the number of frames of a pair after which it is hinted: frames that are the only ones of their pair cost an
// Offload nothing.
const hintAt = 8

// A recent pair of a worker, as a hash, and the number of its frames since it took the place. Two pairs with one place or one
// hash cost a hint.
type recent struct {
	pair uint64
	n    uint8
}

const recentBits = 10

// hint counts a frame that was forwarded, and hints its pair.
func (w *worker) hint(f *frame.Frame, c, e *circuit) {
	if l := max(c.enters, e.leaves); l != atAll && !(f.Tunnel && f.From.Peer() == 0) {
		w.hintAs(f.Bytes()[:macsLen], f.From, c.tag, f.Bytes(), l)
	}
}

// hintAs is hint for a frame that came with these MACs from a place; b is what it is now.
func (w *worker) hintAs(macs []byte, from frame.Dest, tag uint32, b []byte, l look) {
	if w.recent == nil {
		w.recent = make([]recent, 1<<recentBits)
	}
	x := binary.BigEndian.Uint64(macs) ^ bits.RotateLeft64(uint64(binary.BigEndian.Uint32(macs[8:]))<<32|uint64(from), 23) ^ uint64(tag)
	switch l {
	case atHosts:
		x ^= addresses(b)
	case atTuple:
		x ^= headers(b)
	}
	x *= 0x9e3779b97f4a7c15
	r := &w.recent[x>>(64-recentBits)]
	if r.pair != x {
		*r = recent{pair: x}
	}
	if r.n++; r.n < hintAt {
		return
	}
	r.n = 0
	p := Pair{From: from, Tag: tag, Src: frame.MAC(macs[6:]), Dst: frame.MAC(macs)}
	if l != atPair {
		var ok bool
		if p.Tuple, ok = frame.TupleOf(b); !ok {
			r.n = hintAt - 1 // a fragment: the next frame may be whole
			return
		}
	}
	w.offload.Hint(p)
}

const hashPrime = 0xbf58476d1ce4e5b9

// headers returns a hash of what frames of one Tuple have in common. Other frames may have any.
func headers(b []byte) (x uint64) {
	const ipv4, ipv6 = ethLen + 20, ethLen + 40
	var protocol byte
	x = addresses(b)
	switch t := binary.BigEndian.Uint16(b[macsLen:]); {
	case t == typeIPv4 && len(b) >= ipv4+4:
		protocol = b[ethLen+9]
		b = b[ipv4:]
	case t == typeIPv6 && len(b) >= ipv6+4:
		protocol = b[ethLen+6]
		b = b[ipv6:]
	default:
		return 0
	}
	ports := binary.BigEndian.Uint32(b)
	if protocol == icmpv4 || protocol == icmpv6 {
		ports >>= 16 // type and code; the checksum follows
	}
	x = (bits.RotateLeft64(x, 29) ^ uint64(ports) ^ uint64(protocol)<<32) * hashPrime
	return x ^ x>>32
}
