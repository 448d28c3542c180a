package metrics

import (
	"strconv"

	vswitch "github.com/vxswitch/vxswitch/switch"
)

func (s sink) port(st *vswitch.PortStats) {
	s = s.with("port", text(st.Name), "number", strconv.Itoa(int(st.Port)))
	s.counter("port_receive_frames", "Frames that came in.")(st.Rx.Frames)
	s.counter("port_receive_bytes", "Bytes of frames that came in.")(st.Rx.Bytes)
	s.counter("port_accepted_frames", "Frames that came in and were not dropped.")(st.Accepted.Frames)
	s.counter("port_accepted_bytes", "Bytes of frames that came in and were not dropped.")(st.Accepted.Bytes)
	s.counter("port_transmit_frames", "Frames that went out.")(st.Tx.Frames)
	s.counter("port_transmit_bytes", "Bytes of frames that went out.")(st.Tx.Bytes)
	decided := s.counter("port_decided_frames", "Frames that came in and were neither flooded nor dropped, by what became of them.", "decision")
	decided(st.Forwarded, "forwarded")
	decided(st.Replied, "replied")
	decided(st.Consumed, "consumed")
	s.counter("port_flooded_frames", "Frames that came in and were flooded, once each, by class.", "class").flooded(st.Flood)
	dropped := s.counter("port_dropped_frames", "Frames that came in, or copies meant to go out, and were dropped.", "direction")
	dropped(st.RxDrops.Total(), "receive")
	dropped(st.TxDrops.Total(), "transmit")
	drops := s.counter("drops", "Of vxswitch_port_dropped_frames_total, by reason. A reason appears with its first drop.", "direction", "reason")
	drops.drops(st.RxDrops, "receive")
	drops.drops(st.TxDrops, "transmit")
}

func (s sink) attachment(st *vswitch.AttachmentStats, ports map[uint16]string) {
	s = s.with("port", text(ports[st.Port]), "number", strconv.Itoa(int(st.Port)), "tag", strconv.Itoa(int(st.Tag)))
	s.counter("attachment_receive_frames", "Frames that came in and were not dropped.")(st.Rx.Frames)
	s.counter("attachment_receive_bytes", "Bytes of frames that came in and were not dropped.")(st.Rx.Bytes)
	s.counter("attachment_transmit_frames", "Frames that went out: to a tunnel one, whatever the number of peers.")(st.Tx.Frames)
	s.counter("attachment_transmit_bytes", "Bytes of frames that went out.")(st.Tx.Bytes)
}

func (s sink) up(name string, up bool) {
	n := uint64(0)
	if up {
		n = 1
	}
	s.with("port", name).gauge("port_up", "1 for a port of the configuration that runs, 0 for one that is down.")(n)
}

func (p put) flooded(n vswitch.Flooded) {
	p(n.Broadcast, "broadcast")
	p(n.Multicast, "multicast")
	p(n.Unknown, "unknown")
}

func (s sink) vsi(st *vswitch.VSIStats, ports map[uint16]string) {
	s = s.with("vni", st.VNI.String())
	s.counter("vsi_receive_frames", "Frames that came in and were not dropped, of all attachments that there are and were.")(st.Rx.Frames)
	s.counter("vsi_receive_bytes", "Bytes of frames that came in and were not dropped.")(st.Rx.Bytes)
	s.counter("vsi_transmit_frames", "Frames that went out: a frame flooded to n attachments is n.")(st.Tx.Frames)
	s.counter("vsi_transmit_bytes", "Bytes of frames that went out.")(st.Tx.Bytes)
	for i := range st.Attachments {
		s.attachment(&st.Attachments[i], ports)
	}
	s.counter("vsi_flooded_frames", "Frames flooded, once each, by class.", "class").flooded(st.Flood)
	s.counter("vsi_dropped_frames", "Frames and copies dropped.")(st.Drops.Total())
	s.counter("vsi_drops", "Of vxswitch_vsi_dropped_frames_total, by reason. A reason appears with its first drop.", "reason").drops(st.Drops)
	s.counter("vsi_held_ports", "Ports taken out because MACs moved to and fro.")(st.Held)
	s.gauge("fdb_entries", "MACs in the table, of any kind.")(uint64(st.FDB.Entries))
	s.gauge("fdb_learned_entries", "MACs in the table that count towards limits.")(uint64(st.FDB.LearnedEntries))
	s.gauge("fdb_slots", "Entries there is memory for, at 24 bytes each, 32 in a table that evicts.")(uint64(st.FDB.Slots))
	s.counter("fdb_learned", "MACs learned.")(st.FDB.Learned)
	s.counter("fdb_moves", "MACs that were heard elsewhere, and followed.")(st.FDB.Moved)
	s.counter("fdb_frozen", "MACs that moved too often within minutes, and were frozen.")(st.FDB.Frozen)
	s.counter("fdb_flapped", "MACs that moved too often within a second: a loop?")(st.FDB.Flapped)
	s.counter("fdb_aged", "MACs forgotten because they were not heard for the ageing time.")(st.FDB.Aged)
	s.counter("fdb_evicted", "MACs that made room.")(st.FDB.Evicted)
	s.counter("fdb_refused", "Claims that met a static, sticky or frozen entry.")(st.FDB.Refused)
	s.counter("fdb_full", "MACs not learned at a limit.")(st.FDB.Full)
	s.counter("fdb_busy", "MACs not learned because the table was locked or crowded.")(st.FDB.Busy)
}
