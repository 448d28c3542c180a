package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/setting"
)

// Check returns what is wrong with the settings, as [New] and [Policy.Update] do.
func (c *Config) Check() error {
	w := setting.Of("policy: Config")
	if n := c.count(); n > MaxRules {
		w.Wrong("Rules", nil, "%d rules, at most %d are allowed", n, MaxRules)
	}
	if c.Default > Deny {
		w.Want("Default", uint8(c.Default), "Allow or Deny")
	}
	w.Number("MaxFlows", c.MaxFlows, 1, maxMaxFlows, DefaultMaxFlows)
	c.checkSets(w)
	c.checkTiers(w)
	for i := range c.Rules {
		w.Add(fmt.Sprintf("Rules[%d]", i), c.Rules[i].check(c))
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

func (c *Config) checkSets(w *setting.Check) {
	for _, name := range slices.Sorted(maps.Keys(c.Sets)) {
		if name == "" {
			w.Wrong("Sets", nil, "a set needs a name")
		}
		checkPrefixes(w, fmt.Sprintf("Sets[%q]", name), c.Sets[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.PortSets)) {
		if name == "" {
			w.Wrong("PortSets", nil, "a set needs a name")
		}
		for i, e := range c.PortSets[name] {
			if !e.valid() {
				w.Want(fmt.Sprintf("PortSets[%q][%d]", name, i), e, endpointForm)
			}
		}
	}
}

func (c *Config) checkTiers(w *setting.Check) {
	names := map[string]bool{}
	for i := range c.Tiers {
		t, at := &c.Tiers[i], fmt.Sprintf("Tiers[%d]", i)
		if t.Name == "" || names[t.Name] {
			w.Want(at+".Name", t.Name, "a name that no other tier has")
		}
		names[t.Name] = true
		if t.Direction >= numDirections {
			w.Want(at+".Direction", uint8(t.Direction), directionForm)
		}
		if t.Default != nil && *t.Default > Pass {
			w.Want(at+".Default", uint8(*t.Default), "Allow, Deny or Pass")
		}
		for i := range t.Rules {
			w.Add(fmt.Sprintf("%s.Rules[%d]", at, i), t.Rules[i].check(c))
		}
	}
}

const directionForm = "Both, Ingress or Egress"

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

func (r *Rule) check(c *Config) error {
	w := setting.Of("policy: Rule")
	if r.Action >= numActions {
		w.Want("Action", uint8(r.Action), "Allow, Deny, Pass or Log")
	}
	if r.Direction >= numDirections {
		w.Want("Direction", uint8(r.Direction), directionForm)
	}
	src, dst := sourceOf(r), destinationOf(r)
	src.check(w, c, &sourceFields, r.Protocol)
	dst.check(w, c, &destinationFields, r.Protocol)
	if len(r.ICMP)+len(r.NotICMP) != 0 && r.Protocol != wire.ProtoICMP && r.Protocol != wire.ProtoICMPv6 {
		w.Want("Protocol", r.Protocol, "%d or %d for ICMP types", wire.ProtoICMP, wire.ProtoICMPv6)
	}
	return w.Err()
}

// askedFields are the names of the fields of a Rule that an asked has.
type askedFields struct{ list, not, set, all, notSets, ports, notPorts, portSets, notPortSets string }

var (
	sourceFields      = askedFields{"Src", "NotSrc", "SrcSet", "AllSrcSets", "NotSrcSets", "SrcPorts", "NotSrcPorts", "SrcPortSets", "NotSrcPortSets"}
	destinationFields = askedFields{"Dst", "NotDst", "DstSet", "AllDstSets", "NotDstSets", "DstPorts", "NotDstPorts", "DstPortSets", "NotDstPortSets"}
)

// check checks what a rule about a protocol asks of one end.
func (a *asked) check(w *setting.Check, c *Config, is *askedFields, protocol uint8) {
	checkPrefixes(w, is.list, a.list)
	checkPrefixes(w, is.not, a.not)
	if _, ok := c.Sets[a.set]; a.set != "" && !ok {
		w.Want(is.set, a.set, "the name of a set")
	}
	checkNames(w, is.all, a.all, c.Sets, "the name of a set")
	checkNames(w, is.notSets, a.notSets, c.Sets, "the name of a set")
	checkNames(w, is.portSets, a.portSets, c.PortSets, "the name of one of PortSets")
	checkNames(w, is.notPortSets, a.notPortSets, c.PortSets, "the name of one of PortSets")
	checkPorts(w, is.ports, a.ports)
	checkPorts(w, is.notPorts, a.notPorts)
	if protocol == 0 || hasPorts(protocol) {
		return
	}
	for _, l := range []struct {
		field string
		n     int
	}{{is.ports, len(a.ports)}, {is.notPorts, len(a.notPorts)}, {is.portSets, len(a.portSets)}, {is.notPortSets, len(a.notPortSets)}} {
		if l.n != 0 {
			w.Wrong(l.field, nil, "protocol %d has no ports", protocol)
		}
	}
}

func checkNames[T any](w *setting.Check, field string, names []string, sets map[string][]T, want string) {
	for i, name := range names {
		if _, ok := sets[name]; !ok {
			w.Want(fmt.Sprintf("%s[%d]", field, i), name, "%s", want)
		}
	}
}

func checkPorts(w *setting.Check, field string, list []PortRange) {
	for i, p := range list {
		if p.First > p.Last {
			w.Want(fmt.Sprintf("%s[%d]", field, i), p, "a range in ascending order")
		}
	}
}
