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
	for _, l := range []struct {
		name string
		list []netip.Prefix
	}{{"Src", r.Src}, {"Dst", r.Dst}, {"NotSrc", r.NotSrc}, {"NotDst", r.NotDst}} {
		checkPrefixes(w, l.name, l.list)
	}
	r.checkSets(w, c)
	r.checkPorts(w)
	if len(r.ICMP)+len(r.NotICMP) != 0 && r.Protocol != wire.ProtoICMP && r.Protocol != wire.ProtoICMPv6 {
		w.Want("Protocol", r.Protocol, "%d or %d for ICMP types", wire.ProtoICMP, wire.ProtoICMPv6)
	}
	return w.Err()
}

// checkSets checks that the sets that a rule names are there.
func (r *Rule) checkSets(w *setting.Check, c *Config) {
	for _, s := range [][2]string{{"SrcSet", r.SrcSet}, {"DstSet", r.DstSet}} {
		if _, ok := c.Sets[s[1]]; s[1] != "" && !ok {
			w.Want(s[0], s[1], "the name of a set")
		}
	}
	for _, l := range []struct {
		name  string
		sets  []string
		ports bool
	}{
		{"AllSrcSets", r.AllSrcSets, false}, {"AllDstSets", r.AllDstSets, false},
		{"NotSrcSets", r.NotSrcSets, false}, {"NotDstSets", r.NotDstSets, false},
		{"SrcPortSets", r.SrcPortSets, true}, {"DstPortSets", r.DstPortSets, true},
		{"NotSrcPortSets", r.NotSrcPortSets, true}, {"NotDstPortSets", r.NotDstPortSets, true},
	} {
		for i, name := range l.sets {
			at := fmt.Sprintf("%s[%d]", l.name, i)
			if _, ok := c.PortSets[name]; l.ports && !ok {
				w.Want(at, name, "the name of one of PortSets")
			} else if _, ok := c.Sets[name]; !l.ports && !ok {
				w.Want(at, name, "the name of a set")
			}
		}
	}
}

func (r *Rule) checkPorts(w *setting.Check) {
	without := r.Protocol != 0 && !hasPorts(r.Protocol)
	for _, l := range []struct {
		name string
		list []PortRange
	}{{"SrcPorts", r.SrcPorts}, {"DstPorts", r.DstPorts}, {"NotSrcPorts", r.NotSrcPorts}, {"NotDstPorts", r.NotDstPorts}} {
		for i, p := range l.list {
			if p.First > p.Last {
				w.Want(fmt.Sprintf("%s[%d]", l.name, i), p, "a range in ascending order")
			}
		}
		if len(l.list) != 0 && without {
			w.Wrong(l.name, nil, "protocol %d has no ports", r.Protocol)
		}
	}
	for _, l := range []struct {
		name string
		sets []string
	}{{"SrcPortSets", r.SrcPortSets}, {"DstPortSets", r.DstPortSets}, {"NotSrcPortSets", r.NotSrcPortSets}, {"NotDstPortSets", r.NotDstPortSets}} {
		if len(l.sets) != 0 && without {
			w.Wrong(l.name, nil, "protocol %d has no ports", r.Protocol)
		}
	}
}
