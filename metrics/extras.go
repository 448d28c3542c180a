package metrics

import (
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/port"
)

// Some ports count more than the switch counts of them.

func (s sink) packet(device string, st port.PacketStats) {
	s = s.with("device", device)
	s.counter("packet_receive_overflow_frames", "Frames lost before a reader saw them: its receive buffer was full.")(st.RxOverflow)
	s.gauge("packet_receive_buffer_bytes", "Smallest receive buffer, as the kernel counts.")(uint64(st.RecvBuffer))
	s.gauge("packet_transmit_buffer_bytes", "Send buffer, as the kernel counts.")(uint64(st.SendBuffer))
}

func (s sink) buffered(name string, st port.BufferedStats) {
	s = s.with("buffer", name)
	s.gauge("buffer_waiting_frames", "Frames in the queue.")(uint64(st.Waiting))
	s.counter("buffer_sent_frames", "Frames the port took.")(st.Sent)
	s.counter("buffer_full_frames", "Frames dropped because the queue was full; the switch counts them as port-full.")(st.Full)
	s.counter("buffer_lost_frames", "Frames the port dropped after they had waited; the switch does not know of them.")(st.Drops.Total())
	s.counter("buffer_losses", "Of vxswitch_buffer_lost_frames_total, by reason. A reason appears with its first loss.", "reason").drops(st.Drops)
}

func (s sink) capture(name string, st capture.Stats) {
	s = s.with("capture", name)
	s.counter("capture_packets", "Packets written.")(st.Packets)
	s.counter("capture_dropped_packets", "Packets not written: no room in the buffer, or the file failed.")(st.Dropped)
}
