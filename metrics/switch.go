package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	vswitch "github.com/vxswitch/vxswitch/switch"
)

// portFamilies show vswitch.PortStats.
type portFamilies struct {
	rxFrames, rxBytes, acceptedFrames, acceptedBytes, txFrames, txBytes family
	decided, flooded, dropped, drops, eventsLost                        family
}

func (p *portFamilies) describe(fs *families) {
	p.rxFrames = fs.counter("port_receive_frames", "Frames that came in.", "port", "number")
	p.rxBytes = fs.counter("port_receive_bytes", "Bytes of frames that came in.", "port", "number")
	p.acceptedFrames = fs.counter("port_accepted_frames", "Frames that came in and were not dropped.", "port", "number")
	p.acceptedBytes = fs.counter("port_accepted_bytes", "Bytes of frames that came in and were not dropped.", "port", "number")
	p.txFrames = fs.counter("port_transmit_frames", "Frames that went out.", "port", "number")
	p.txBytes = fs.counter("port_transmit_bytes", "Bytes of frames that went out.", "port", "number")
	p.decided = fs.counter("port_decided_frames", "Frames that came in and were neither flooded nor dropped, by what became of them.", "port", "number", "decision")
	p.flooded = fs.counter("port_flooded_frames", "Frames that came in and were flooded, once each, by class.", "port", "number", "class")
	p.dropped = fs.counter("port_dropped_frames", "Frames that came in, or copies meant to go out, and were dropped.", "port", "number", "direction")
	p.drops = fs.counter("drops", "Of vxswitch_port_dropped_frames_total, by reason. A reason appears with its first drop.", "port", "number", "direction", "reason")
	p.eventsLost = fs.counter("events_lost", "Events of the switch that did not fit the queue of a reader.")
}

func (p *portFamilies) collect(ch chan<- prometheus.Metric, s *vswitch.PortStats) {
	name, num := text(s.Name), strconv.Itoa(int(s.Port))
	put(ch, p.rxFrames, s.Rx.Frames, name, num)
	put(ch, p.rxBytes, s.Rx.Bytes, name, num)
	put(ch, p.acceptedFrames, s.Accepted.Frames, name, num)
	put(ch, p.acceptedBytes, s.Accepted.Bytes, name, num)
	put(ch, p.txFrames, s.Tx.Frames, name, num)
	put(ch, p.txBytes, s.Tx.Bytes, name, num)
	put(ch, p.decided, s.Forwarded, name, num, "forwarded")
	put(ch, p.decided, s.Replied, name, num, "replied")
	put(ch, p.decided, s.Consumed, name, num, "consumed")
	putFlooded(ch, p.flooded, s.Flood, name, num)
	put(ch, p.dropped, s.RxDrops.Total(), name, num, "receive")
	put(ch, p.dropped, s.TxDrops.Total(), name, num, "transmit")
	for r, n := range s.RxDrops.All() {
		put(ch, p.drops, n, name, num, "receive", r.String())
	}
	for r, n := range s.TxDrops.All() {
		put(ch, p.drops, n, name, num, "transmit", r.String())
	}
}

func putFlooded(ch chan<- prometheus.Metric, f family, n vswitch.Flooded, labels ...string) {
	labels = append(labels, "broadcast")
	class := &labels[len(labels)-1]
	put(ch, f, n.Broadcast, labels...)
	*class = "multicast"
	put(ch, f, n.Multicast, labels...)
	*class = "unknown"
	put(ch, f, n.Unknown, labels...)
}

// vsiFamilies show vswitch.VSIStats.
type vsiFamilies struct {
	flooded, dropped, drops, held family

	entries, learnedEntries, slots                                      family
	learned, moves, frozen, flapped, aged, evicted, refused, full, busy family
}

func (v *vsiFamilies) describe(fs *families) {
	v.flooded = fs.counter("vsi_flooded_frames", "Frames flooded, once each, by class.", "vni", "class")
	v.dropped = fs.counter("vsi_dropped_frames", "Frames and copies dropped.", "vni")
	v.drops = fs.counter("vsi_drops", "Of vxswitch_vsi_dropped_frames_total, by reason. A reason appears with its first drop.", "vni", "reason")

	v.entries = fs.gauge("fdb_entries", "MACs in the table, of any kind.", "vni")
	v.learnedEntries = fs.gauge("fdb_learned_entries", "MACs in the table that count towards limits.", "vni")
	v.slots = fs.gauge("fdb_slots", "Entries there is memory for, at 24 bytes each, 32 in a table that evicts.", "vni")
	v.learned = fs.counter("fdb_learned", "MACs learned.", "vni")
	v.moves = fs.counter("fdb_moves", "MACs that were heard elsewhere, and followed.", "vni")
	v.frozen = fs.counter("fdb_frozen", "MACs that moved too often within minutes, and were frozen.", "vni")
	v.held = fs.counter("vsi_held_ports", "Ports taken out because MACs moved to and fro.", "vni")
	v.flapped = fs.counter("fdb_flapped", "MACs that moved too often within a second: a loop?", "vni")
	v.aged = fs.counter("fdb_aged", "MACs forgotten because they were not heard for the ageing time.", "vni")
	v.evicted = fs.counter("fdb_evicted", "MACs that made room.", "vni")
	v.refused = fs.counter("fdb_refused", "Claims that met a static, sticky or frozen entry.", "vni")
	v.full = fs.counter("fdb_full", "MACs not learned at a limit.", "vni")
	v.busy = fs.counter("fdb_busy", "MACs not learned because the table was locked or crowded.", "vni")
}

func (v *vsiFamilies) collect(ch chan<- prometheus.Metric, s *vswitch.VSIStats) {
	vni := s.VNI.String()
	putFlooded(ch, v.flooded, s.Flood, vni)
	put(ch, v.dropped, s.Drops.Total(), vni)
	for r, n := range s.Drops.All() {
		put(ch, v.drops, n, vni, r.String())
	}
	put(ch, v.entries, s.FDB.Entries, vni)
	put(ch, v.learnedEntries, s.FDB.LearnedEntries, vni)
	put(ch, v.slots, s.FDB.Slots, vni)
	put(ch, v.learned, s.FDB.Learned, vni)
	put(ch, v.moves, s.FDB.Moved, vni)
	put(ch, v.frozen, s.FDB.Frozen, vni)
	put(ch, v.held, s.Held, vni)
	put(ch, v.flapped, s.FDB.Flapped, vni)
	put(ch, v.aged, s.FDB.Aged, vni)
	put(ch, v.evicted, s.FDB.Evicted, vni)
	put(ch, v.refused, s.FDB.Refused, vni)
	put(ch, v.full, s.FDB.Full, vni)
	put(ch, v.busy, s.FDB.Busy, vni)
}
