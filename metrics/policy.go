package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/policy"
)

// policyFamilies show policy.Stats and policy.GuardStats.
type policyFamilies struct {
	packets, bytes, other                          family
	flows, opened, aged, evicted, revoked, noFlows family
	guard                                          family
}

func (p *policyFamilies) describe(fs *families) {
	p.packets = fs.counter("policy_packets", "Packets decided on: by a rule, by the default where none matched, or as ARP and ND (neighbours).", "policy", "by", "rule")
	p.bytes = fs.counter("policy_bytes", "Bytes of these packets, from the first byte of the frame on.", "policy", "by", "rule")
	p.other = fs.counter("policy_unruled_packets", "Packets decided on without a rule: passed as part of a flow (reply), about one (related), after its first fragment (fragment), or dropped (malformed).", "policy", "cause")
	p.flows = fs.gauge("policy_flows", "Flows that are tracked.", "policy")
	p.opened = fs.counter("policy_opened_flows", "Flows that began to be tracked.", "policy")
	p.aged = fs.counter("policy_aged_flows", "Flows that were silent for their timeout.", "policy")
	p.evicted = fs.counter("policy_evicted_flows", "Flows that made room for others.", "policy")
	p.revoked = fs.counter("policy_revoked_flows", "Flows that rules do not allow any more.", "policy")
	p.noFlows = fs.counter("policy_untracked_packets", "Packets allowed whose flow found no room.", "policy")
	p.guard = fs.counter("guard_dropped_frames", "Frames of a port that spoke in the name of others, or as what it may not be.", "port", "vni", "cause")
}

func (p *policyFamilies) collect(ch chan<- prometheus.Metric, name string, s policy.Stats) {
	count := func(by, rule string, c policy.Count) {
		put(ch, p.packets, c.Packets, name, by, rule)
		put(ch, p.bytes, c.Bytes, name, by, rule)
	}
	for r, c := range s.Rules {
		count("rule", text(r), c)
	}
	count("default", "", s.Default)
	count("neighbours", "", s.Neighbours)
	put(ch, p.other, s.Replies, name, "reply")
	put(ch, p.other, s.Related, name, "related")
	put(ch, p.other, s.Fragments, name, "fragment")
	put(ch, p.other, s.Malformed, name, "malformed")
	put(ch, p.flows, s.Flows.Tracked, name)
	put(ch, p.opened, s.Flows.Opened, name)
	put(ch, p.aged, s.Flows.Aged, name)
	put(ch, p.evicted, s.Flows.Evicted, name)
	put(ch, p.revoked, s.Flows.Revoked, name)
	put(ch, p.noFlows, s.Flows.Full, name)
}

func (p *policyFamilies) collectGuard(ch chan<- prometheus.Metric, port, vni string, s policy.GuardStats) {
	put(ch, p.guard, s.Malformed, port, vni, "malformed")
	put(ch, p.guard, s.MAC, port, vni, "mac")
	put(ch, p.guard, s.Address, port, vni, "address")
	put(ch, p.guard, s.ARP, port, vni, "arp")
	put(ch, p.guard, s.ND, port, vni, "nd")
	put(ch, p.guard, s.DHCPServer, port, vni, "dhcp-server")
	put(ch, p.guard, s.RouterAdvertisement, port, vni, "router-advertisement")
	put(ch, p.guard, s.Tunnel, port, vni, "tunnel")
}
