package underlay

import "github.com/vxswitch/vxswitch/frame"

// Stats is a snapshot of an underlay's counters since it was opened. Datagrams are
// counted one by one: each copy of a replicated one, each segment of a run.
type Stats struct {
	RxDatagrams uint64 // handed to a reader
	RxRuns      uint64 // messages of several datagrams that the kernel left in one piece
	RxSegments  uint64 // datagrams in them
	RxTruncated uint64 // of RxDatagrams, longer than MaxDatagram, and no superframe: marked TooBig
	RxOverflow  uint64 // dropped before a reader saw them: receive buffer or inbox full, or a wrong checksum
	RxErrors    uint64 // errors of a receive socket that were passed over

	TxDatagrams uint64                   // taken by the kernel, or by the Network
	TxLost      [frame.NumReasons]uint64 // not sent, by reason
	TxRuns      uint64                   // messages of several datagrams that the kernel was to cut
	TxSegments  uint64                   // datagrams in them, which count in TxDatagrams too
	TxCalls     uint64                   // sendmmsg calls
	TxRetries   uint64                   // messages tried again, since what had stopped them may have been about another

	// What the network reported about datagrams sent earlier (IP_RECVERR).
	Errors struct {
		Refused     uint64 // ICMP port or protocol unreachable: nobody listens there
		Unreachable uint64 // ICMP net or host unreachable and the like
		TooBig      uint64 // ICMP fragmentation needed, packet too big, or above the interface's MTU
		Prohibited  uint64 // ICMP administratively prohibited
		Other       uint64
	}

	// The smallest buffers granted to a receive and to a transmit socket, as
	// the kernel counts: twice what was asked for, since its own bookkeeping is
	// in it. 0 in memory.
	RecvBuffer, SendBuffer int
}

// Lost returns the sum of TxLost.
func (s Stats) Lost() uint64 {
	var n uint64
	for _, v := range s.TxLost {
		n += v
	}
	return n
}
