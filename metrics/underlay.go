package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay"
)

// underlayFamilies show underlay.Stats.
type underlayFamilies struct {
	rx, rxRuns, rxSegments, rxTruncated, rxOverflow, rxErrors family
	tx, txRuns, txSegments, txCalls, txRetries, lost, losses  family
	reported, rxBuffer, txBuffer                              family
}

func (u *underlayFamilies) describe(fs *families) {
	u.rx = fs.counter("underlay_receive_datagrams", "Datagrams handed to a reader.", "underlay")
	u.rxRuns = fs.counter("underlay_receive_runs", "Messages of several datagrams that the kernel left in one piece.", "underlay")
	u.rxSegments = fs.counter("underlay_receive_run_datagrams", "Datagrams in runs.", "underlay")
	u.rxTruncated = fs.counter("underlay_receive_truncated_datagrams", "Of the datagrams handed to a reader, those longer than it takes.", "underlay")
	u.rxOverflow = fs.counter("underlay_receive_overflow_datagrams", "Datagrams lost before a reader saw them: receive buffer full, or a wrong checksum.", "underlay")
	u.rxErrors = fs.counter("underlay_receive_errors", "Errors of a receive socket that were passed over.", "underlay")
	u.tx = fs.counter("underlay_transmit_datagrams", "Datagrams taken by the kernel.", "underlay")
	u.txRuns = fs.counter("underlay_transmit_runs", "Messages of several datagrams that the kernel was to cut.", "underlay")
	u.txSegments = fs.counter("underlay_transmit_run_datagrams", "Datagrams in runs.", "underlay")
	u.txCalls = fs.counter("underlay_transmit_calls", "System calls that send.", "underlay")
	u.txRetries = fs.counter("underlay_transmit_retries", "Messages tried again, since what had stopped them may have been about another.", "underlay")
	u.lost = fs.counter("underlay_lost_datagrams", "Datagrams not sent.", "underlay")
	u.losses = fs.counter("underlay_losses", "Of vxswitch_underlay_lost_datagrams_total, by reason. A reason appears with its first loss.", "underlay", "reason")
	u.reported = fs.counter("underlay_reported_errors", "ICMP errors and the like about datagrams sent earlier, by kind.", "underlay", "kind")
	u.rxBuffer = fs.gauge("underlay_receive_buffer_bytes", "Smallest receive buffer of a socket, as the kernel counts.", "underlay")
	u.txBuffer = fs.gauge("underlay_transmit_buffer_bytes", "Smallest send buffer of a socket, as the kernel counts.", "underlay")
}

func (u *underlayFamilies) collect(ch chan<- prometheus.Metric, name string, s underlay.Stats) {
	put(ch, u.rx, s.RxDatagrams, name)
	put(ch, u.rxRuns, s.RxRuns, name)
	put(ch, u.rxSegments, s.RxSegments, name)
	put(ch, u.rxTruncated, s.RxTruncated, name)
	put(ch, u.rxOverflow, s.RxOverflow, name)
	put(ch, u.rxErrors, s.RxErrors, name)
	put(ch, u.tx, s.TxDatagrams, name)
	put(ch, u.txRuns, s.TxRuns, name)
	put(ch, u.txSegments, s.TxSegments, name)
	put(ch, u.txCalls, s.TxCalls, name)
	put(ch, u.txRetries, s.TxRetries, name)
	put(ch, u.lost, s.Lost(), name)
	losses := frame.Drops(s.TxLost)
	for r, n := range losses.All() {
		put(ch, u.losses, n, name, r.String())
	}
	put(ch, u.reported, s.Errors.Refused, name, "refused")
	put(ch, u.reported, s.Errors.Unreachable, name, "unreachable")
	put(ch, u.reported, s.Errors.TooBig, name, "too-big")
	put(ch, u.reported, s.Errors.Prohibited, name, "prohibited")
	put(ch, u.reported, s.Errors.Other, name, "other")
	put(ch, u.rxBuffer, s.RecvBuffer, name)
	put(ch, u.txBuffer, s.SendBuffer, name)
}
