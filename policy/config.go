package policy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/setting"
)

// Bounds of a Config.
const (
	MaxRules        = 4096
	DefaultMaxFlows = 65536
	maxMaxFlows     = 1 << 24
)

// Config holds the settings of a [Policy]. The zero value allows everything.
type Config struct {
	Rules   []Rule `json:"rules,omitempty"`   // at most 4096; the first that matches decides
	Default Action `json:"default,omitempty"` // the action if no rule matches

	// Sets are lists of prefixes that rules name ([Policy.Update] keeps a set that is nil here).
	Sets map[string][]netip.Prefix `json:"sets,omitempty"`

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

// Check returns what is wrong with the settings, as [New] and [Policy.Update] do.
func (c *Config) Check() error {
	w := setting.Of("policy: Config")
	if len(c.Rules) > MaxRules {
		w.Wrong("Rules", nil, "%d rules, at most %d are allowed", len(c.Rules), MaxRules)
	}
	if c.Default >= numActions {
		w.Want("Default", uint8(c.Default), "Allow or Deny")
	}
	w.Number("MaxFlows", c.MaxFlows, 1, maxMaxFlows, DefaultMaxFlows)
	for _, name := range slices.Sorted(maps.Keys(c.Sets)) {
		if name == "" {
			w.Wrong("Sets", nil, "a set needs a name")
		}
		checkPrefixes(w, fmt.Sprintf("Sets[%q]", name), c.Sets[name])
	}
	for i := range c.Rules {
		w.Add(fmt.Sprintf("Rules[%d]", i), c.Rules[i].check(c.Sets))
	}
	c.Timeouts.ticks(w)
	const flows = "the policy is stateless, and tracks no flows"
	if c.Stateless && c.Routed {
		w.Wrong("Routed", nil, flows)
	}
	if c.Stateless && c.PickUp {
		w.Wrong("PickUp", nil, flows)
	}
	return w.Err()
}

func checkPrefixes(w *setting.Check, field string, list []netip.Prefix) {
	for i, p := range list {
		if !isPrefix(p) {
			w.Want(fmt.Sprintf("%s[%d]", field, i), p, "a prefix without host bits")
		}
	}
}

func isPrefix(p netip.Prefix) bool {
	return p.IsValid() && p == p.Masked() && !p.Addr().Is4In6()
}

// hasPorts reports whether a protocol's header begins with source and destination port.
func hasPorts(protocol uint8) bool {
	switch protocol {
	case wire.ProtoTCP, wire.ProtoUDP, protoUDPLite, protoSCTP, protoDCCP:
		return true
	}
	return false
}

func (r *Rule) check(sets map[string][]netip.Prefix) error {
	w := setting.Of("policy: Rule")
	if r.Action >= numActions {
		w.Want("Action", uint8(r.Action), "Allow or Deny")
	}
	if r.Direction >= numDirections {
		w.Want("Direction", uint8(r.Direction), "Both, Ingress or Egress")
	}
	checkPrefixes(w, "Src", r.Src)
	checkPrefixes(w, "Dst", r.Dst)
	for _, s := range [][2]string{{"SrcSet", r.SrcSet}, {"DstSet", r.DstSet}} {
		if _, ok := sets[s[1]]; s[1] != "" && !ok {
			w.Want(s[0], s[1], "the name of a set")
		}
	}
	for _, l := range []struct {
		name string
		list []PortRange
	}{{"SrcPorts", r.SrcPorts}, {"DstPorts", r.DstPorts}} {
		for i, p := range l.list {
			if p.First > p.Last {
				w.Want(fmt.Sprintf("%s[%d]", l.name, i), p, "a range in ascending order")
			}
		}
		if len(l.list) != 0 && r.Protocol != 0 && !hasPorts(r.Protocol) {
			w.Wrong(l.name, nil, "protocol %d has no ports", r.Protocol)
		}
	}
	if len(r.ICMP) != 0 && r.Protocol != wire.ProtoICMP && r.Protocol != wire.ProtoICMPv6 {
		w.Want("Protocol", r.Protocol, "%d or %d for ICMP types", wire.ProtoICMP, wire.ProtoICMPv6)
	}
	return w.Err()
}
