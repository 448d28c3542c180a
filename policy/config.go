package policy

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// Bounds of a Config.
const (
	MaxRules        = 16000
	DefaultMaxFlows = 65536
	maxMaxFlows     = 1 << 24
)

// Config holds the settings of a [Policy]. The zero value allows everything.
type Config struct {
	// Tiers are groups of rules before Rules: in each the first rule that matches decides, or passes the frame on to the next.
	Tiers []Tier `json:"tiers,omitempty"`

	Rules   []Rule `json:"rules,omitempty"`   // the first that matches decides; at most 16,000 with those of tiers, of which those with ports in lists and in sets count twice
	Default Action `json:"default,omitempty"` // the action if no rule matches: allow or deny

	// Sets are lists of prefixes that rules name ([Policy.Update] keeps a set that is nil here).
	Sets map[string][]netip.Prefix `json:"sets,omitempty"`

	// PortSets are lists of addresses, each with a port of a protocol, that rules name, such as those of a service that is at
	// another port of each host ([Policy.Update] keeps a set that is nil here).
	PortSets map[string][]Endpoint `json:"portSets,omitempty"`

	Stateless bool `json:"stateless,omitempty"` // tracks no flows: replies need rules

	// Routed leaves the VNI out of the keys of flows: for segments that a gateway joins, where a
	// flow enters with one VNI and leaves with another. All segments and gateways that have the policy are of one VRF then.
	Routed bool `json:"routed,omitempty"`

	// PickUp tracks TCP connections from any packet on, not only from their SYN: for policies
	// added under traffic.
	PickUp bool `json:"pickUp,omitempty"`

	MaxFlows int      `json:"maxFlows,omitempty"` // most tracked flows, up to 16,777,216; 0 = 65,536 ([Policy.Update] does not change it)
	Timeouts Timeouts `json:"timeouts,omitzero"`  // how long flows are remembered
}

// Timeouts are how long a flow is remembered after its last packet: whole seconds up to a year.
// A flow is assured when its opener has sent again after a reply.
type Timeouts struct {
	TCPOpening   time.Duration `json:"tcpOpening,omitempty"`   // TCP before a reply; default 30 s
	TCPHalfOpen  time.Duration `json:"tcpHalfOpen,omitempty"`  // TCP from the reply until assured; default 60 s
	TCP          time.Duration `json:"tcp,omitempty"`          // TCP when assured; default 2 h 4 min (RFC 5382, section 5)
	TCPClosing   time.Duration `json:"tcpClosing,omitempty"`   // after FIN or RST; default 60 s
	UDPOpening   time.Duration `json:"udpOpening,omitempty"`   // UDP until assured; default 30 s
	UDP          time.Duration `json:"udp,omitempty"`          // UDP when assured; default 2 min (RFC 4787, section 4.3)
	ICMP         time.Duration `json:"icmp,omitempty"`         // ICMP and ICMPv6; default 30 s
	OtherOpening time.Duration `json:"otherOpening,omitempty"` // other protocols until assured; default 30 s
	Other        time.Duration `json:"other,omitempty"`        // other protocols when assured; default 10 min
}

// maxTimeout keeps ages far below the point where ticks wrap.
const maxTimeout = 365 * 24 * time.Hour

// limits are the timeouts in ticks.
type limits [numTimeouts]uint32

// ticks returns the timeouts, and notes what is wrong with them.
func (t *Timeouts) ticks(w *setting.Check) (l limits) {
	for _, s := range []struct {
		name     string
		is       time.Duration
		usual    time.Duration
		for1, or timeout
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
			w.Want("Timeouts."+s.name, d, "whole seconds up to a year, or 0 for %v", s.usual)
		}
		l[s.for1], l[s.or] = uint32(d/time.Second), uint32(d/time.Second)
	}
	return l
}
