package underlay

import "github.com/vxswitch/vxswitch/frame"

// Stats is a snapshot of the counters of an underlay. Each copy of a datagram counts, and each datagram
// of a run.
type Stats struct {
	RxDatagrams uint64 `json:"rx_datagrams"` // handed to a reader
	RxRuns      uint64 `json:"rx_runs"`      // messages of several datagrams that the kernel left in one piece
	RxSegments  uint64 `json:"rx_segments"`  // datagrams in them
	RxTruncated uint64 `json:"rx_truncated"` // of RxDatagrams: longer than MaxDatagram, and dropped as TooBig
	RxOverflow  uint64 `json:"rx_overflow"`  // dropped before a reader saw them: receive buffer or inbox full, or a wrong checksum
	RxErrors    uint64 `json:"rx_errors"`    // errors of receive sockets, after which they were read on

	TxDatagrams uint64                   `json:"tx_datagrams"` // taken by the kernel, or by the Network
	TxLost      [frame.NumReasons]uint64 `json:"tx_lost"`      // not sent, by reason
	TxRuns      uint64                   `json:"tx_runs"`      // messages of several datagrams that the kernel was to cut
	TxSegments  uint64                   `json:"tx_segments"`  // datagrams in them, which count in TxDatagrams too
	TxCalls     uint64                   `json:"tx_calls"`     // sendmmsg calls
	TxRetries   uint64                   `json:"tx_retries"`   // messages sent again after an error that may have been about another

	// ICMP errors about datagrams sent earlier (IP_RECVERR).
	Errors struct {
		Refused     uint64 `json:"refused"`     // ICMP port or protocol unreachable
		Unreachable uint64 `json:"unreachable"` // ICMP net or host unreachable and the like
		TooBig      uint64 `json:"too_big"`     // ICMP fragmentation needed, packet too big, or above the interface's MTU
		Prohibited  uint64 `json:"prohibited"`  // ICMP administratively prohibited
		Other       uint64 `json:"other"`
	} `json:"errors"`

	// Sizes of the smallest receive and send buffers, as the kernel counts: twice what was requested,
	// for its own overhead. 0 in package memory.
	RecvBuffer int `json:"recv_buffer"`
	SendBuffer int `json:"send_buffer"`
}

// Lost returns the sum of TxLost.
func (s Stats) Lost() uint64 {
	var n uint64
	for _, v := range s.TxLost {
		n += v
	}
	return n
}
