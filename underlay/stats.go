package underlay

import "github.com/vxswitch/vxswitch/frame"

// Stats is a snapshot of an underlay's counters since it was opened. Datagrams are
// counted one by one: each copy of a replicated one, each segment of a run.
type Stats struct {
	RxDatagrams uint64 `json:"rx_datagrams"` // handed to a reader
	RxRuns      uint64 `json:"rx_runs"`      // messages of several datagrams that the kernel left in one piece
	RxSegments  uint64 `json:"rx_segments"`  // datagrams in them
	RxTruncated uint64 `json:"rx_truncated"` // of RxDatagrams, longer than MaxDatagram, and no superframe: marked TooBig
	RxOverflow  uint64 `json:"rx_overflow"`  // dropped before a reader saw them: receive buffer or inbox full, or a wrong checksum
	RxErrors    uint64 `json:"rx_errors"`    // errors of a receive socket that were passed over

	TxDatagrams uint64                   `json:"tx_datagrams"` // taken by the kernel, or by the Network
	TxLost      [frame.NumReasons]uint64 `json:"tx_lost"`      // not sent, by reason
	TxRuns      uint64                   `json:"tx_runs"`      // messages of several datagrams that the kernel was to cut
	TxSegments  uint64                   `json:"tx_segments"`  // datagrams in them, which count in TxDatagrams too
	TxCalls     uint64                   `json:"tx_calls"`     // sendmmsg calls
	TxRetries   uint64                   `json:"tx_retries"`   // messages tried again, since what had stopped them may have been about another

	// What the network reported about datagrams sent earlier (IP_RECVERR).
	Errors struct {
		Refused     uint64 `json:"refused"`     // ICMP port or protocol unreachable: nobody listens there
		Unreachable uint64 `json:"unreachable"` // ICMP net or host unreachable and the like
		TooBig      uint64 `json:"too_big"`     // ICMP fragmentation needed, packet too big, or above the interface's MTU
		Prohibited  uint64 `json:"prohibited"`  // ICMP administratively prohibited
		Other       uint64 `json:"other"`
	} `json:"errors"`

	// The smallest buffers granted to a receive and to a transmit socket, as
	// the kernel counts: twice what was asked for, since its own bookkeeping is
	// in it. 0 in memory.
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
