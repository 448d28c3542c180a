// Package gso cuts superframes into segments and joins segments into superframes. The Linux network stack and virtio
// devices pass superframes whole, to be cut when they leave the machine.
//
//	device --> Check ----> switch --> Cutter.Cut  --> tunnel, device without offloads
//	tunnel --> Received -> switch --> Joiner.Join --> device with offloads
//
//	superframe          | headers | payload ................................ |
//	Cut              -> | headers | payload . |  headers | payload . |  headers | rest |
//	Join             <-  the same segments, if nothing but what Cut changes differs
//
// A reader of a device with metadata calls [Check] for each frame. A reader of a tunnel, which has no metadata, calls
// [Pending] and [Received]. Then the frame's [frame.GSO] is valid. Cut and Join never write to a frame and never copy a
// payload: they make headers in scratch memory and return pieces for a system call to gather.
//
// Use a [Cutter] or a [Joiner] from one goroutine; the zero values work. Neither allocates once its scratch memory has
// grown to what the traffic needs.
package gso
