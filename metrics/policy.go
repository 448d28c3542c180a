package metrics

import "github.com/vxswitch/vxswitch/policy"

func (s sink) policy(name string, st policy.Stats) {
	s = s.with("policy", name)
	packets := s.counter("policy_packets", "Packets decided on: by a rule, by the default where none matched, or as ARP and ND (neighbours).", "by", "rule")
	bytes := s.counter("policy_bytes", "Bytes of these packets, from the first byte of the frame on.", "by", "rule")
	count := func(by, rule string, c policy.Count) {
		packets(c.Packets, by, rule)
		bytes(c.Bytes, by, rule)
	}
	for r, c := range st.Rules {
		count("rule", text(r), c)
	}
	count("default", "", st.Default)
	count("neighbours", "", st.Neighbours)
	other := s.counter("policy_unruled_packets", "Packets decided on without a rule: passed as part of a flow (reply), about one (related), after its first fragment (fragment), or dropped (malformed).", "cause")
	other(st.Replies, "reply")
	other(st.Related, "related")
	other(st.Fragments, "fragment")
	other(st.Malformed, "malformed")
	s.gauge("policy_flows", "Flows that are tracked.")(uint64(st.Flows.Tracked))
	s.counter("policy_opened_flows", "Flows that began to be tracked.")(st.Flows.Opened)
	s.counter("policy_aged_flows", "Flows that were silent for their timeout.")(st.Flows.Aged)
	s.counter("policy_evicted_flows", "Flows that made room for others.")(st.Flows.Evicted)
	s.counter("policy_revoked_flows", "Flows that rules do not allow any more.")(st.Flows.Revoked)
	s.counter("policy_untracked_packets", "Packets allowed whose flow found no room.")(st.Flows.Full)
}

func (s sink) guard(port, vni string, st policy.GuardStats) {
	drops := s.with("port", port, "vni", vni).counter("guard_dropped_frames", "Frames of a port that spoke in the name of others, or as what it may not be.", "cause")
	for cause, n := range st.All() {
		drops(n, cause)
	}
}
