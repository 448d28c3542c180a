package metrics

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay"
)

func (s sink) underlay(name string, st underlay.Stats) {
	s = s.with("underlay", name)
	s.counter("underlay_receive_datagrams", "Datagrams handed to a reader.")(st.RxDatagrams)
	s.counter("underlay_receive_runs", "Messages of several datagrams that the kernel left in one piece.")(st.RxRuns)
	s.counter("underlay_receive_run_datagrams", "Datagrams in runs.")(st.RxSegments)
	s.counter("underlay_receive_truncated_datagrams", "Of the datagrams handed to a reader, those longer than it takes.")(st.RxTruncated)
	s.counter("underlay_receive_overflow_datagrams", "Datagrams lost before a reader saw them: receive buffer full, or a wrong checksum.")(st.RxOverflow)
	s.counter("underlay_receive_errors", "Errors of a receive socket that were passed over.")(st.RxErrors)
	s.counter("underlay_transmit_datagrams", "Datagrams taken by the kernel.")(st.TxDatagrams)
	s.counter("underlay_transmit_runs", "Messages of several datagrams that the kernel was to cut.")(st.TxRuns)
	s.counter("underlay_transmit_run_datagrams", "Datagrams in runs.")(st.TxSegments)
	s.counter("underlay_transmit_calls", "System calls that send.")(st.TxCalls)
	s.counter("underlay_transmit_retries", "Messages tried again, since what had stopped them may have been about another.")(st.TxRetries)
	s.counter("underlay_lost_datagrams", "Datagrams not sent.")(st.Lost())
	s.counter("underlay_losses", "Of vxswitch_underlay_lost_datagrams_total, by reason. A reason appears with its first loss.", "reason").drops(frame.Drops(st.TxLost))
	reported := s.counter("underlay_reported_errors", "ICMP errors and the like about datagrams sent earlier, by kind.", "kind")
	reported(st.Errors.Refused, "refused")
	reported(st.Errors.Unreachable, "unreachable")
	reported(st.Errors.TooBig, "too-big")
	reported(st.Errors.Prohibited, "prohibited")
	reported(st.Errors.Other, "other")
	s.gauge("underlay_receive_buffer_bytes", "Smallest receive buffer of a socket, as the kernel counts.")(uint64(st.RecvBuffer))
	s.gauge("underlay_transmit_buffer_bytes", "Smallest send buffer of a socket, as the kernel counts.")(uint64(st.SendBuffer))
}
