package metrics

import "github.com/vxswitch/vxswitch/arp"

func (s sink) neighbours(vni string, st arp.Stats) {
	s = s.with("vni", vni)
	messages := s.counter("neighbour_messages", "ARP and ND messages.", "protocol")
	outcomes := s.counter("neighbour_outcomes", "Of vxswitch_neighbour_messages_total, by what was done and why. An outcome appears with its first message.", "protocol", "outcome")
	for protocol, c := range map[string]*arp.Counts{"arp": &st.ARP, "nd": &st.ND} {
		messages(c.Total(), protocol)
		for o, n := range c.All() {
			outcomes(n, protocol, o.String())
		}
	}
	s.counter("neighbour_asked", "Neighbours asked whether they are still there.")(st.Asked)
	t := st.Table
	entries := s.gauge("neighbour_entries", "Neighbours in the table, by where they are known from: snooped or set.", "origin")
	entries(uint64(t.Snooped), "snooped")
	entries(uint64(t.Entries-t.Snooped), "set")
	s.counter("neighbour_learned", "Neighbours learned.")(t.Learned)
	s.counter("neighbour_moves", "Neighbours whose MAC or place changed.")(t.Moved)
	s.counter("neighbour_refused", "Claims that met a static, control or frozen entry.")(t.Refused)
	s.counter("neighbour_full", "Neighbours not learned for lack of room.")(t.Full)
	s.counter("neighbour_busy", "Neighbours not learned because the table was being changed.")(t.Busy)
	s.counter("neighbour_invalid", "Claims with an address or MAC that is no host's.")(t.Invalid)
	s.counter("neighbour_aged", "Neighbours forgotten because they were not heard any more.")(t.Aged)
	s.counter("neighbour_duplicates", "Addresses found to be claimed by several MACs.")(t.Duplicates)
}
