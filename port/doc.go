// Package port provides the ports of a switch: kernel devices, Go programs, and anything that reads and
// writes one frame at a time.
//
//	         switch worker                              far side
//	               |                                        |
//	Reader.Read <--+-- Device ---------- TAP or TUN --------+-- the kernel's stack
//	               |         \---------- hidden TAP --------+-- veth for a guest, veth, network card
//	               +-- Packet ---------- packet socket -----+-- veth, network card
//	Writer.Write --+-- Pipe ------------ two bounded rings -+-- Pipe.Send, Pipe.Recv
//	               +-- ReadWriteCloser - Read, Write -------+-- any io.ReadWriteCloser
//
// [OpenVeth] and [OpenInterface] join an interface to the TAP of a Device, and take it from its host's stack; a
// [Packet] stands beside the stack. A Packet can leave packets to an underlay of packet sockets on the same
// interface: see [Packet.Leave]. Device and Packet need Linux. On macOS and Windows package port/water opens
// devices.
//
// [Buffered] wraps a port whose Write may wait, and puts a queue in front of it. Package capture writes
// the frames of a port to a file; package port/porttest adds faults to a port.
//
// Every type here has the methods of vswitch.Port and Name; Device, Packet and Pipe can be paused. A switch
// closes the ports that are attached to it; the program closes the others. They also work without a switch:
// read frames into a [frame.Batch], and write them as [frame.Out].
//
// # Frames
//
// Frames are Ethernet, from the destination MAC on, without FCS; those of a TUN are IP packets. Frames
// shorter than an Ethernet header are delivered as they are: the switch counts them. A port drops frames
// of a kind that it does not take with [frame.BadKind].
//
// [frame.Out.Tag] is a VLAN id, 0 for none. A Device or a Packet inserts the tag ([frame.Out.VLANTag]) behind the MAC
// addresses while it writes; the frame itself does not change. A tag in a received frame stays there.
//
// # Superframes
//
// A [Device] or a [Packet] reads superframes of up to 64 KiB, which are TCP segments or UDP datagrams that
// the kernel has not cut, and frames with an incomplete checksum: see [frame.GSO]. It writes them too, and
// joins frames of one flow, so that one system call carries dozens of frames. A Pipe, a ReadWriteCloser, and a Device
// or a Packet without offloads take ordinary frames only. Their [frame.Offloads] say so, and the switch
// cuts and completes frames for them. A superframe counts as sent only if all of its segments were sent.
//
// # Concurrency
//
// Each Reader and each Writer is for one goroutine; different Writers of a port may be used at once. All
// other methods are safe for concurrent use. A frame is valid until its Reader is read again. A Writer
// does not keep frames.
package port
