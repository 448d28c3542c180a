package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/port"
)

// extraFamilies show what some ports count beside what the switch counts of them.
type extraFamilies struct {
	overflow, rxBuffer, txBuffer      family // port.PacketStats
	waiting, sent, full, lost, losses family // port.BufferedStats
	captured, missed                  family // capture.Stats
}

func (e *extraFamilies) describe(fs *families) {
	e.overflow = fs.counter("packet_receive_overflow_frames", "Frames lost before a reader saw them: its receive buffer was full.", "device")
	e.rxBuffer = fs.gauge("packet_receive_buffer_bytes", "Smallest receive buffer, as the kernel counts.", "device")
	e.txBuffer = fs.gauge("packet_transmit_buffer_bytes", "Send buffer, as the kernel counts.", "device")

	e.waiting = fs.gauge("buffer_waiting_frames", "Frames in the queue.", "buffer")
	e.sent = fs.counter("buffer_sent_frames", "Frames the port took.", "buffer")
	e.full = fs.counter("buffer_full_frames", "Frames dropped because the queue was full; the switch counts them as port-full.", "buffer")
	e.lost = fs.counter("buffer_lost_frames", "Frames the port dropped after they had waited; the switch does not know of them.", "buffer")
	e.losses = fs.counter("buffer_losses", "Of vxswitch_buffer_lost_frames_total, by reason. A reason appears with its first loss.", "buffer", "reason")

	e.captured = fs.counter("capture_packets", "Packets written.", "capture")
	e.missed = fs.counter("capture_dropped_packets", "Packets not written: no room in the buffer, or the file failed.", "capture")
}

func (e *extraFamilies) collectPacket(ch chan<- prometheus.Metric, device string, s port.PacketStats) {
	put(ch, e.overflow, s.RxOverflow, device)
	put(ch, e.rxBuffer, s.RecvBuffer, device)
	put(ch, e.txBuffer, s.SendBuffer, device)
}

func (e *extraFamilies) collectBuffered(ch chan<- prometheus.Metric, name string, s port.BufferedStats) {
	put(ch, e.waiting, s.Waiting, name)
	put(ch, e.sent, s.Sent, name)
	put(ch, e.full, s.Full, name)
	put(ch, e.lost, s.Drops.Total(), name)
	for r, n := range s.Drops.All() {
		put(ch, e.losses, n, name, r.String())
	}
}

func (e *extraFamilies) collectCapture(ch chan<- prometheus.Metric, name string, s capture.Stats) {
	put(ch, e.captured, s.Packets, name)
	put(ch, e.missed, s.Dropped, name)
}
