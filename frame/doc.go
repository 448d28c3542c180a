// Package frame holds what every other package of vxswitch speaks about: a
// packet in a buffer, the batch it came in, where it came from, where it goes,
// and the three small interfaces packets pass through.
//
//	Reader --Batch of Frames--> worker --[]Out--> Writer --[]Datagram--> Sender
//	(TAP, VTEP, Pipe)           (decide)          (TAP, VTEP, Pipe)      (UDP, memory)
//
// # Ownership
//
// Frames are borrowed. A [Frame] belongs to the [Reader] that read it and is
// valid until that Reader is read again. Between the two it passes by
// reference: the worker decides about it, and any number of Writers send it.
// From the moment a frame is staged for sending nobody writes to it, so several
// egress ports can share one buffer, and nothing here needs a reference count,
// a pool or a copy. Who wants to keep a frame longer calls [Frame.Clone].
//
// # Two names for a place
//
// A [Dest] is a small number that names an egress inside one switch: a port,
// and behind a tunnel port a peer. An [Endpoint] is an address on the underlay.
// Tables hold Dests; only a VTEP knows which Endpoint a peer number stands for.
//
// The package imports nothing but the standard library and does no I/O.
package frame
