package policy

import (
	"github.com/vxswitch/vxswitch/frame"
)

// A Logged is a packet that a rule with the action Log matched.
type Logged struct {
	Rule      string      // its name
	Direction Direction   // the slot: Ingress or Egress
	VNI       frame.VNI   // of the segment
	From      frame.Dest  // where the packet came from
	SrcMAC    frame.MAC   // zero of packets of IP ports
	DstMAC    frame.MAC   // likewise
	EtherType uint16      // as rules have it
	Tuple     frame.Tuple // addresses, protocol and ports; zero if it is not IP
}

// WatchLog calls f for packets that rules with the action Log match, once a second at most for a rule, until stop is called.
// The count of the rule has the others. f runs inside a worker of the switch, and must not wait or call p.
func (p *Policy) WatchLog(f func(Logged)) (stop func()) { return p.logs.Add(f) }

// log tells of the packet, unless its rule was told of in this second. next is the rule behind.
func (j *judgement) log(rule, next int) {
	last := &j.rules.logged[next-1] // which the lines of a rule have in common
	was, now := last.Load(), uint64(j.at.Tick)+1
	if was == now || !last.CompareAndSwap(was, now) {
		return
	}
	k := &j.k
	x := Logged{Rule: j.rules.names[rule], Direction: Direction(j.slot + 1), VNI: j.segment, From: j.from, EtherType: k.etherType}
	if k.macs {
		x.SrcMAC, x.DstMAC = frame.MACFrom(k.srcMAC), frame.MACFrom(k.dstMAC)
	}
	if k.ip {
		x.Tuple = frame.Tuple{Protocol: k.protocol, Src: k.src.netip(), Dst: k.dst.netip(), SrcPort: k.sport, DstPort: k.dport}
	}
	j.p.logs.Tell(x)
}
