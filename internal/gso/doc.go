// Package gso makes one frame of many and many of one: superframes, which the Linux
// networking stack and virtio devices hand over whole and leave the cutting to who
// sends them out of the machine.
//
//	device --> Check ----> switch --> Cutter.Cut  --> tunnel, device without offloads
//	tunnel --> Received -> switch --> Joiner.Join --> device with offloads
//
//	superframe          | headers | payload ................................ |
//	Cut              -> | headers | payload . |  headers | payload . |  headers | rest |
//	Join             <-  the same segments, if nothing but what Cut changes differs
//
// A reader that gets metadata from a device calls [Check] on each frame, and one that gets none
// from a tunnel [Pending] and [Received]; from there on the frame's [frame.GSO] can be relied
// on. Cut and Join never write to a frame and never copy a payload: they make headers in
// scratch memory of their own and return pieces to be gathered by the system call that sends.
//
// A [Cutter] and a [Joiner] are for one goroutine each; their zero values work. Neither
// allocates once its scratch has grown to what the traffic needs.
package gso
