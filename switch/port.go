package vswitch

import "github.com/vxswitch/vxswitch/frame"

// A Port is anything frames come in from and go out to: a TAP, a VTEP, a Go
// program's Pipe. Its identity is its Go value, so implementations are pointers.
type Port interface {
	// Readers returns the receive queues. The switch runs one goroutine on each.
	Readers() []frame.Reader

	// Writer returns the transmit side for worker w, which is any number from 0 on;
	// a port with n queues uses queue w mod n. Writers of one port may share
	// descriptors, never scratch memory. It is called once for each worker that
	// sends here, on first use.
	Writer(w int) frame.Writer

	// MTU returns the longest frame the port takes towards peer, in bytes from the
	// destination MAC on, VLAN tag and FCS not counted; a superframe is judged by
	// its segments. Peer 0 asks for flooded frames.
	MTU(peer uint16) int

	// Close makes every Read return net.ErrClosed. It is idempotent.
	Close() error
}

// A Tunnel is a Port that leads to many peers, such as a VTEP. Its attachments are
// in split-horizon group 1 unless they say otherwise, and frames that come in
// through it carry their tag in Frame.VNI and the peer in Frame.From.
type Tunnel interface {
	Port

	// Open makes the tunnel accept frames with this tag; Shut ends it.
	Open(tag uint32) error
	Shut(tag uint32)

	// Retire starts the removal of learned peers for which named returns false: from
	// here on no frame comes in from them. The switch then waits until no worker
	// knows the number, flushes their entries, waits again and calls Free.
	Retire(named func(peer uint16) bool) []uint16
	Free(peers []uint16)
}

// A Pauser is a Port that can be detached without being closed: between Pause and
// Resume every Read returns frame.ErrPaused.
type Pauser interface {
	Pause()
	Resume()
}
