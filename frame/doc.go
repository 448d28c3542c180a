// Package frame defines what all packages of vxswitch share: a packet in a buffer, the batch it came in,
// where it came from, where it goes, and the three small interfaces that packets pass through.
//
//	Reader --Batch of Frames--> worker --[]Out--> Writer --[]Datagram--> Sender
//	(TAP, VTEP, Pipe)           (decide)          (TAP, VTEP, Pipe)      (UDP, memory)
//
// # Ownership
//
// Frames are borrowed. A [Frame] belongs to the [Reader] that read it, and is valid until the next Read of
// that Reader. Until then it is passed by reference: the worker decides about it, and any number of
// Writers send it. Once a frame is staged for sending, nothing may write to it, so several egress ports can
// share one buffer without reference counts, pools or copies. To keep a frame longer, use [Frame.Clone].
//
// # Dest and Endpoint
//
// A [Dest] is a small number for an egress of one switch: a port, or a peer behind a tunnel port. An
// [Endpoint] is an address on the underlay. Tables contain Dests; only a VTEP knows the Endpoint of a peer.
//
// The package imports only the standard library and does no I/O.
package frame
