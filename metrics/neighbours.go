package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/arp"
)

// neighbourFamilies show arp.Stats.
type neighbourFamilies struct {
	messages, outcomes, asked                                           family
	entries, learned, moved, refused, full, busy, invalid, aged, doubly family
}

func (f *neighbourFamilies) describe(fs *families) {
	f.messages = fs.counter("neighbour_messages", "ARP and ND messages.", "vni", "protocol")
	f.outcomes = fs.counter("neighbour_outcomes", "Of vxswitch_neighbour_messages_total, by what was done and why. An outcome appears with its first message.", "vni", "protocol", "outcome")
	f.asked = fs.counter("neighbour_asked", "Neighbours asked whether they are still there.", "vni")
	f.entries = fs.gauge("neighbour_entries", "Neighbours in the table, by where they are known from: snooped or set.", "vni", "origin")
	f.learned = fs.counter("neighbour_learned", "Neighbours learned.", "vni")
	f.moved = fs.counter("neighbour_moves", "Neighbours whose MAC or place changed.", "vni")
	f.refused = fs.counter("neighbour_refused", "Claims that met a static, control or frozen entry.", "vni")
	f.full = fs.counter("neighbour_full", "Neighbours not learned for lack of room.", "vni")
	f.busy = fs.counter("neighbour_busy", "Neighbours not learned because the table was being changed.", "vni")
	f.invalid = fs.counter("neighbour_invalid", "Claims with an address or MAC that is no host's.", "vni")
	f.aged = fs.counter("neighbour_aged", "Neighbours forgotten because they were not heard any more.", "vni")
	f.doubly = fs.counter("neighbour_duplicates", "Addresses found to be claimed by several MACs.", "vni")
}

func (f *neighbourFamilies) collect(ch chan<- prometheus.Metric, vni string, s arp.Stats) {
	f.collectCounts(ch, &s.ARP, vni, "arp")
	f.collectCounts(ch, &s.ND, vni, "nd")
	put(ch, f.asked, s.Asked, vni)
	put(ch, f.entries, s.Table.Snooped, vni, "snooped")
	put(ch, f.entries, s.Table.Entries-s.Table.Snooped, vni, "set")
	put(ch, f.learned, s.Table.Learned, vni)
	put(ch, f.moved, s.Table.Moved, vni)
	put(ch, f.refused, s.Table.Refused, vni)
	put(ch, f.full, s.Table.Full, vni)
	put(ch, f.busy, s.Table.Busy, vni)
	put(ch, f.invalid, s.Table.Invalid, vni)
	put(ch, f.aged, s.Table.Aged, vni)
	put(ch, f.doubly, s.Table.Duplicates, vni)
}

func (f *neighbourFamilies) collectCounts(ch chan<- prometheus.Metric, c *arp.Counts, vni, protocol string) {
	put(ch, f.messages, c.Total(), vni, protocol)
	for b, n := range c.All() {
		put(ch, f.outcomes, n, vni, protocol, b.String())
	}
}
