package l3

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of [TooBigConfig].
const (
	DefaultPerSender = 10
	DefaultTotal     = 1000
)

// TooBigConfig holds the settings of a [TooBig]. The zero value works.
type TooBigConfig struct {
	PerSender int `json:"perSender,omitzero"` // answers to one source address of one network in a second; 0 = DefaultPerSender
	Total     int `json:"total,omitzero"`     // answers in a second in all, half of them to one port or peer; 0 = DefaultTotal
}

// A TooBig is the stage for a switch's slot TooBig: it answers unicast frames that are
// longer than their egress takes. What it answers it turns, in place, into
//
//   - for IPv4 with DF, ICMP "fragmentation needed" (type 3, code 4) with the MTU of the
//     next hop (RFC 1191, section 4), 576 bytes at most (RFC 1812, section 4.3.2.3);
//   - for IPv6, ICMPv6 "packet too big" (RFC 4443, section 3.2), 1280 bytes at most,
//
// from the address, IP and MAC, that the frame was for, to the one it came from. VLAN
// tags inside the frame stay. A packet of an IP port is answered likewise. The MTU is that of IP: At.MTU less the Ethernet header
// and those tags. A superframe is judged by its segments; its own header is quoted, as
// Linux does: the sender's stack knows packets by addresses, ports and sequence number.
//
// It answers nothing else; [TooBigStats] names every cause. No host is told of errors
// about errors (RFC 1122, section 3.2.2; RFC 4443, section 2.4), nor that an IPv4 packet
// without DF is too long: a bridge does not fragment, and the frame is dropped.
type TooBig struct {
	limit limiter
	count [numOutcomes]atomic.Uint64
}

// TooBigStats counts the frames a [TooBig] was asked about, each in one field.
type TooBigStats struct {
	Sent4       uint64 `json:"sent4"`       // answered with ICMP
	Sent6       uint64 `json:"sent6"`       // answered with ICMPv6
	Limited     uint64 `json:"limited"`     // beyond a rate
	Fragmenting uint64 `json:"fragmenting"` // IPv4 without DF
	NotIP       uint64 `json:"not_ip"`      // another protocol
	NotHost     uint64 `json:"not_host"`    // a MAC or IP address, of either end, that is no single host's
	ICMPError   uint64 `json:"icmp_error"`  // about an ICMP error or redirect, or ICMP whose type cannot be seen
	Fragment    uint64 `json:"fragment"`    // a fragment other than the first
	Malformed   uint64 `json:"malformed"`   // header fields or checksum wrong, extension headers cut short or too many
	Fits        uint64 `json:"fits"`        // the IP packet fits, what follows it in the frame does not
	TinyMTU     uint64 `json:"tiny_mtu"`    // an MTU that no IP link may have: under 68 (RFC 791) or 1280 (RFC 8200, section 5)
	Unreachable uint64 `json:"unreachable"` // from the switch itself, or from a tunnel peer that has no number
}

// An outcome is what became of a frame: an index into TooBig.count.
type outcome int

const (
	sent4 outcome = iota
	sent6
	limited
	fragmenting
	notIP
	notHost
	icmpError
	fragment
	malformed
	fits
	tinyMTU
	unreachable
	numOutcomes
)

// NewTooBig returns a stage. A nil cfg means defaults.
func NewTooBig(cfg *TooBigConfig) (*TooBig, error) {
	var c TooBigConfig
	if cfg != nil {
		c = *cfg
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := new(TooBig)
	t.limit.set(c.PerSender, c.Total)
	return t, nil
}

// Check returns what [NewTooBig] refuses.
func (c *TooBigConfig) Check() error {
	w := setting.Of("l3: TooBigConfig")
	checkRates(w, c.PerSender, c.Total)
	return w.Err()
}

// Process answers f, which is longer than at.MTU, with frame.Reply; f is then the
// answer, and not longer than at.MTU. What gets none is frame.Drop(frame.TooBig), and f
// is unchanged. A frame that fits is none of its business: frame.Continue.
func (t *TooBig) Process(f *frame.Frame, at frame.At) frame.Verdict {
	if f.SegLen() <= at.MTU {
		return frame.Continue
	}
	o := t.answer(f, at)
	t.count[o].Add(1)
	if o == sent4 || o == sent6 {
		return frame.Reply
	}
	return frame.Drop(frame.TooBig)
}

// answer looks at what is no matter of IPv4 or IPv6.
func (t *TooBig) answer(f *frame.Frame, at frame.At) outcome {
	if f.From.Port() == 0 || f.Tunnel && f.From.Peer() == 0 {
		return unreachable
	}
	switch f.Kind {
	case frame.IPv4:
		return t.answer4(f, 0, at)
	case frame.IPv6:
		return t.answer6(f, 0, at)
	}
	e, ok := wire.ParseEthernet(f.Bytes())
	if !ok {
		return malformed
	}
	dst, src := frame.MAC(e.Dst()), frame.MAC(e.Src())
	switch {
	case dst.IsGroup() || dst.IsZero() || src.IsGroup() || src.IsZero():
		return notHost
	}
	switch etherType, ip := e.Network(); etherType {
	case wire.TypeIPv4:
		return t.answer4(f, ip, at)
	case wire.TypeIPv6:
		return t.answer6(f, ip, at)
	}
	return notIP
}

// Stats returns a snapshot.
func (t *TooBig) Stats() TooBigStats {
	n := func(o outcome) uint64 { return t.count[o].Load() }
	return TooBigStats{
		Sent4: n(sent4), Sent6: n(sent6), Limited: n(limited), Fragmenting: n(fragmenting), NotIP: n(notIP),
		NotHost: n(notHost), ICMPError: n(icmpError), Fragment: n(fragment), Malformed: n(malformed),
		Fits: n(fits), TinyMTU: n(tinyMTU), Unreachable: n(unreachable),
	}
}
