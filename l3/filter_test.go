package l3

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/policy"
)

// A witness is a Filter that keeps what it has seen.
type witness struct {
	seen []seen
	say  frame.Verdict
	kept frame.Tick // of the last Housekeep
}

type seen struct {
	kind frame.Kind
	vni  frame.VNI
	from frame.Dest
	b    []byte
}

func (w *witness) Process(f *frame.Frame, at frame.At) frame.Verdict {
	w.seen = append(w.seen, seen{f.Kind, f.VNI, at.From, bytes.Clone(f.Bytes())})
	return w.say
}

func (w *witness) Housekeep(now frame.Tick) { w.kept = now }

// TestFilters: filters see each packet once that is routed from or to a segment, without the Ethernet header, and what they drop is
// dropped. The gateway's own packets and those for it are not theirs.
func TestFilters(t *testing.T) {
	l := newLab(t, nil)
	l.knows(l.i10, 1, 0)
	l.knows(l.i20, 2, 0)
	in, out := &witness{say: frame.Continue}, &witness{say: frame.Continue}
	l.i10.SetFilters(in, nil)
	l.i20.SetFilters(nil, out)
	for v6, kind := range map[bool]frame.Kind{false: frame.IPv4, true: frame.IPv6} {
		b := between(v6, 1, 2).bytes(t)
		v, f := l.in(l.i10, bytes.Clone(b))
		check.Equal(t, "verdict", v, frame.Reenter)
		check.Equal(t, "segment", f.VNI, 20)
		check.Equal(t, "kind", f.Kind, frame.Ethernet)
		for vni, w := range map[frame.VNI]*witness{10: in, 20: out} {
			check.Need(t, len(w.seen) == 1, "seen %d times", len(w.seen))
			s := w.seen[0]
			check.Equal(t, "kind seen", s.kind, kind)
			check.Equal(t, "segment seen", s.vni, vni)
			check.Equal(t, "from", s.from, frame.NewDest(1, 0))
			check.True(t, bytes.Equal(s.b, b[14:]), "bytes seen: % x", s.b)
			w.seen = nil
		}
		ping := shape{src: addrOf(v6, 10, 1), dst: addrOf(v6, 10, 254), from: host(1), to: gate(10), ttl: 64, proto: layers.IPProtocolICMPv4, icmp: 8}
		if v6 {
			ping.proto, ping.icmp = layers.IPProtocolICMPv6, 128
		}
		check.Equal(t, "ping of the gateway", l.verdict(l.i10, ping.bytes(t)), frame.Reply)
		last := between(v6, 1, 2)
		last.ttl = 1
		check.Equal(t, "last hop", l.verdict(l.i10, last.bytes(t)), frame.Reply)
		check.Equal(t, "seen of the gateway's own", len(in.seen)+len(out.seen), 0)
	}
	for _, w := range []*witness{in, out} {
		w.say = frame.Drop(frame.Policy)
		check.Equal(t, "verdict", l.verdict(l.i10, between(false, 1, 2).bytes(t)), frame.Drop(frame.Policy))
		w.say = frame.Continue
	}
	out.seen, in.seen = nil, nil
	l.i20.Process(new(frame.Make(shape{src: at4(20, 2), dst: at4(10, 1), from: host(2), to: gate(20), ttl: 64}.bytes(t))), frame.At{})
	check.Equal(t, "seen of the way back", len(in.seen)+len(out.seen), 0)
	l.i10.Housekeep(7)
	check.Equal(t, "kept at", in.kept, 7)
	check.OK(t, l.i10.Close())
	check.True(t, l.i10.in.Load() == nil, "the closed interface has its filter")
}

// TestFilterWaiting: a packet that a filter drops asks nobody, and one that waits for its next hop is judged again when it goes on.
func TestFilterWaiting(t *testing.T) {
	l := newLab(t, nil)
	w := &witness{say: frame.Drop(frame.Policy)}
	l.i20.SetFilters(nil, w)
	b := between(false, 1, 2).bytes(t)
	check.Equal(t, "verdict", l.verdict(l.i10, b), frame.Drop(frame.Policy))
	check.Equal(t, "questions", len(l.injected), 0)
	w.say = frame.Continue
	check.Equal(t, "verdict", l.verdict(l.i10, b), frame.Consume)
	w.say = frame.Drop(frame.Policy)
	l.injected = nil
	l.i20.neighbours.Learn(&arp.Claim{IP: at4(20, 2), MAC: host(2), From: frame.NewDest(1, 0)}, l.now)
	check.Equal(t, "sent", len(l.injected), 0)
	check.Equal(t, "lost", l.i20.Stats().Unresolved, 1)

	in := &witness{say: frame.Continue}
	l.i10.SetFilters(in, nil)
	l.i20.SetFilters(nil, nil)
	p := between(false, 1, 3)
	check.Equal(t, "verdict", l.verdict(l.i10, p.bytes(t)), frame.Consume)
	in.say = frame.Drop(frame.Policy)
	l.injected = nil
	l.i20.neighbours.Learn(&arp.Claim{IP: at4(20, 3), MAC: host(3), From: frame.NewDest(1, 0)}, l.now)
	check.Equal(t, "seen", len(in.seen), 2)
	check.Equal(t, "sent though the filter where it came in drops it", len(l.injected), 0)
}

// A watched filter is a judge that counts who watches it.
type watched struct {
	witness
	watchers int
}

func (*watched) Judge(_, _ frame.MAC, _ frame.Tuple) (func(frame.Count), bool) { return nil, true }

func (w *watched) Watch(func()) (stop func()) {
	w.watchers++
	return func() { w.watchers-- }
}

// TestFilterWatched: a filter is watched for as long as it is in place.
func TestFilterWatched(t *testing.T) {
	l := newLab(t, nil)
	one, other := &watched{}, &watched{}
	for _, x := range []struct {
		in, out    Filter
		one, other int
	}{{one, one, 2, 0}, {one, other, 1, 1}, {nil, other, 0, 1}, {&witness{}, one, 1, 0}} {
		l.i10.SetFilters(x.in, x.out)
		check.Equal(t, "watchers", [2]int{one.watchers, other.watchers}, [2]int{x.one, x.other})
	}
	check.OK(t, l.i10.Close())
	check.Equal(t, "watchers after Close", one.watchers+other.watchers, 0)
}

// TestFilterNextHops: the filter of the next hop's interface decides, also when another next hop takes over, and the one of the interface
// where a packet came in sees it once.
func TestFilterNextHops(t *testing.T) {
	l := newLab(t, nil)
	l.knows(l.i10, 3, 0)
	w := &witness{say: frame.Drop(frame.Policy)}
	in := &witness{say: frame.Continue}
	l.i10.SetFilters(in, w)
	check.OK(t, l.vrf.Add(Route{behind, []NextHop{{Interface: l.i20, IP: at4(20, 2)}, {Interface: l.i10, IP: at4(10, 3)}}}))
	for k := range 100 {
		p := between(false, 1, 4)
		p.dst, p.sport = netip.MustParseAddr("172.16.1.1"), uint16(k)
		check.Equal(t, "verdict", l.verdict(l.i10, p.bytes(t)), frame.Drop(frame.Policy))
	}
	check.True(t, len(w.seen) >= 100, "seen %d", len(w.seen))
	check.Equal(t, "seen as they came in", len(in.seen), 100)
}

// TestFilterPolicies: across segments only what the policy says, with replies; VRFs with the same addresses have nothing in common.
func TestFilterPolicies(t *testing.T) {
	l := newLab(t, nil)
	l.knows(l.i10, 1, 0)
	l.knows(l.i20, 2, 0)
	p := check.Must(policy.New(&policy.Config{Default: policy.Deny, Rules: []policy.Rule{
		{Protocol: 17, Dst: []netip.Prefix{netip.PrefixFrom(at4(20, 0), 24)}, SrcPorts: []policy.PortRange{{First: 5, Last: 5}}},
	}}))(t)
	l.i10.SetFilters(p.Ingress(), p.Egress())
	q := between(false, 1, 2)
	q.sport = 5
	back := shape{src: q.dst, dst: q.src, from: host(2), to: gate(20), ttl: 64}
	reply := back.bytes(t)
	reply[14+20+1], reply[14+20+3] = 9, 5 // from port 9 to 5
	reply[14+20+6], reply[14+20+7] = 0, 0
	check.Equal(t, "before the opener", l.verdict(l.i20, bytes.Clone(reply)), frame.Drop(frame.Policy))
	check.Equal(t, "opener", l.verdict(l.i10, q.bytes(t)), frame.Reenter)
	check.Equal(t, "reply", l.verdict(l.i20, bytes.Clone(reply)), frame.Reenter)
	q.sport = 6
	check.Equal(t, "another port", l.verdict(l.i10, q.bytes(t)), frame.Drop(frame.Policy))
	check.Equal(t, "no reply", l.verdict(l.i20, back.bytes(t)), frame.Drop(frame.Policy))

	blue := l.g.VRF("blue")
	b10, b20 := l.iface(blue, 10, false), l.iface(blue, 20, false)
	l.knows(b20, 2, 0)
	check.Equal(t, "in another VRF", l.verdict(b10, q.bytes(t)), frame.Reenter)
	check.True(t, b20.in.Load() == nil, "a filter is there")
}

// TestFiltersOfOthers: filters see neither what goes back to the segment where it came from, nor the gateway's own errors, which senders
// need to learn the path MTU.
func TestFiltersOfOthers(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		for _, n := range []byte{1, 2} {
			l.knows(l.i10, n, 0)
		}
		l.knows(l.i20, 4, 0)
		deny := &witness{say: frame.Drop(frame.Policy)}
		l.i10.SetFilters(deny, deny)
		inside := between(v6, 1, 2)
		inside.dst = addrOf(v6, 10, 2)
		v, f := l.in(l.i10, inside.bytes(t))
		check.Equal(t, "inside the segment", v, frame.Reenter)
		check.Equal(t, "segment", f.VNI, 10)
		pair := frame.Tuple{Src: addrOf(v6, 10, 1), Dst: addrOf(v6, 10, 2)}
		hop, _, ok := l.i10.Lookup(gate(10), pair)
		check.True(t, ok && hop.VNI == 10 && !hop.Ports, "Lookup inside the segment: %+v, %v", hop, ok)

		long := between(v6, 1, 4)
		long.payload, long.ttl, long.to, long.from = 1472, 63, host(4), gate(20)
		big := frame.Make(long.bytes(t))
		big.VNI = 20
		check.Equal(t, "an error of the gateway", l.i20.PathMTU().Process(&big, frame.At{MTU: 1464}), frame.Reenter)
		check.Equal(t, "segment", big.VNI, 10)

		// One that waits for the MAC of its receiver is not judged afterwards either.
		l.i10.neighbours.Flush()
		big = frame.Make(long.bytes(t))
		big.VNI = 20
		check.Equal(t, "an error that waits", l.i20.PathMTU().Process(&big, frame.At{MTU: 1464}), frame.Consume)
		l.injected = nil
		l.knows(l.i10, 1, 0)
		check.Equal(t, "sent", len(l.injected), 1)
		check.Equal(t, "seen", len(deny.seen), 0)
	}
}
