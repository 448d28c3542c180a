package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/internal/wire"
)

// Bounds of a Config.
const (
	MaxRules        = 4096
	DefaultMaxFlows = 65536
	maxMaxFlows     = 1 << 24
)

// Config holds the settings of a [Policy]. The zero value allows everything.
type Config struct {
	Rules   []Rule `json:"rules,omitempty"`   // at most MaxRules; the first that matches decides
	Default Action `json:"default,omitempty"` // what becomes of what no rule matches

	// Sets are what rules call by name. In [Policy.Update] one that is nil stays as it is.
	Sets map[string][]netip.Prefix `json:"sets,omitempty"`

	Stateless bool `json:"stateless,omitempty"` // no flow is tracked: replies need rules of their own

	// Routed tells flows apart by their addresses alone, not by the VNI: for segments that
	// a gateway joins, where a flow has one on its way in and another on its way out.
	Routed bool `json:"routed,omitempty"`

	// PickUp tracks TCP connections that are found in the middle, for policies that come to
	// hosts which are talking already.
	PickUp bool `json:"pickUp,omitempty"`

	MaxFlows int      `json:"maxFlows,omitempty"` // 0 = DefaultMaxFlows; of New, Update leaves it
	Timeouts Timeouts `json:"timeouts,omitzero"`
}

// Timeouts are how long a flow is remembered after its last packet: whole seconds, 0 for
// the defaults. It is assured when its opener has spoken again after an answer.
type Timeouts struct {
	TCPOpening   time.Duration `json:"tcpOpening,omitempty"`   // until it is answered; default 30 s
	TCPHalfOpen  time.Duration `json:"tcpHalfOpen,omitempty"`  // and then until it is assured; default 60 s
	TCP          time.Duration `json:"tcp,omitempty"`          // default 2 h 4 min (RFC 5382, section 5)
	TCPClosing   time.Duration `json:"tcpClosing,omitempty"`   // after FIN or RST; default 60 s
	UDPOpening   time.Duration `json:"udpOpening,omitempty"`   // until it is assured; default 30 s
	UDP          time.Duration `json:"udp,omitempty"`          // default 2 min (RFC 4787, section 4.3)
	ICMP         time.Duration `json:"icmp,omitempty"`         // default 30 s
	OtherOpening time.Duration `json:"otherOpening,omitempty"` // until it is assured; default 30 s
	Other        time.Duration `json:"other,omitempty"`        // default 10 min
}

// maxTimeout keeps ages far from where ticks wrap.
const maxTimeout = 365 * 24 * time.Hour

// limits are the timeouts in ticks, by what the flow is.
type limits [numKinds]uint32

// ticks returns the timeouts, and what is wrong with them.
func (t *Timeouts) ticks() (l limits, errs []error) {
	for _, s := range []struct {
		name     string
		is       time.Duration
		usual    time.Duration
		for1, or kind
	}{
		{"TCPOpening", t.TCPOpening, 30 * time.Second, tcpOpening, tcpOpening},
		{"TCPHalfOpen", t.TCPHalfOpen, time.Minute, tcpHalfOpen, tcpHalfOpen},
		{"TCP", t.TCP, 124 * time.Minute, tcpOpen, tcpOpen},
		{"TCPClosing", t.TCPClosing, time.Minute, tcpClosing, tcpClosing},
		{"UDPOpening", t.UDPOpening, 30 * time.Second, udpOpening, udpOpening},
		{"UDP", t.UDP, 2 * time.Minute, udpOpen, udpOpen},
		{"ICMP", t.ICMP, 30 * time.Second, icmpOpening, icmpOpen},
		{"OtherOpening", t.OtherOpening, 30 * time.Second, otherOpening, otherOpening},
		{"Other", t.Other, 10 * time.Minute, otherOpen, otherOpen},
	} {
		d := cmp.Or(s.is, s.usual)
		if d < time.Second || d > maxTimeout || d%time.Second != 0 {
			errs = append(errs, fmt.Errorf("policy: Config.Timeouts.%s: %v, allowed are whole seconds up to a year, or 0 for %v", s.name, d, s.usual))
		}
		l[s.for1], l[s.or] = uint32(d/time.Second), uint32(d/time.Second)
	}
	return l, errs
}

// check returns everything that is wrong with c, joined.
func (c *Config) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("policy: Config."+format, args...)) }
	if len(c.Rules) > MaxRules {
		wrong("Rules: %d, allowed are up to %d", len(c.Rules), MaxRules)
	}
	if c.Default >= numActions {
		wrong("Default: %d is no action", c.Default)
	}
	if c.MaxFlows < 0 || c.MaxFlows > maxMaxFlows {
		wrong("MaxFlows: %d, allowed are 1 to %d, or 0 for %d", c.MaxFlows, maxMaxFlows, DefaultMaxFlows)
	}
	for name, set := range c.Sets {
		if name == "" {
			wrong("Sets: one without a name")
		}
		for i, p := range set {
			if !isPrefix(p) {
				wrong("Sets[%q][%d]: %v is no prefix, or has bits beyond its length", name, i, p)
			}
		}
	}
	for i := range c.Rules {
		c.Rules[i].check(c.Sets, func(format string, args ...any) {
			wrong("Rules[%d].%s", i, fmt.Sprintf(format, args...))
		})
	}
	_, more := c.Timeouts.ticks()
	return errors.Join(append(errs, more...)...)
}

func isPrefix(p netip.Prefix) bool {
	return p.IsValid() && p == p.Masked() && !p.Addr().Is4In6()
}

// hasPorts says which protocols begin with a source and a destination port.
func hasPorts(protocol uint8) bool {
	switch protocol {
	case wire.ProtoTCP, wire.ProtoUDP, protoUDPLite, protoSCTP, protoDCCP:
		return true
	}
	return false
}

func (r *Rule) check(sets map[string][]netip.Prefix, wrong func(string, ...any)) {
	if r.Action >= numActions {
		wrong("Action: %d is none", r.Action)
	}
	if r.Direction >= numDirections {
		wrong("Direction: %d is none", r.Direction)
	}
	for _, l := range []struct {
		name string
		list []netip.Prefix
	}{{"Src", r.Src}, {"Dst", r.Dst}} {
		for i, p := range l.list {
			if !isPrefix(p) {
				wrong("%s[%d]: %v is no prefix, or has bits beyond its length", l.name, i, p)
			}
		}
	}
	for _, s := range [][2]string{{"SrcSet", r.SrcSet}, {"DstSet", r.DstSet}} {
		if _, ok := sets[s[1]]; s[1] != "" && !ok {
			wrong("%s: %q is not in Sets", s[0], s[1])
		}
	}
	for _, l := range []struct {
		name string
		list []PortRange
	}{{"SrcPorts", r.SrcPorts}, {"DstPorts", r.DstPorts}} {
		for i, p := range l.list {
			if p.First > p.Last {
				wrong("%s[%d]: %v is no range", l.name, i, p)
			}
		}
		if len(l.list) != 0 && r.Protocol != 0 && !hasPorts(r.Protocol) {
			wrong("%s: protocol %d has no ports", l.name, r.Protocol)
		}
	}
	icmp := r.Protocol == wire.ProtoICMP || r.Protocol == wire.ProtoICMPv6
	if len(r.ICMP) != 0 && !icmp {
		wrong("ICMP: needs Protocol %d or %d", wire.ProtoICMP, wire.ProtoICMPv6)
	}
}
