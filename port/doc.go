// Package port holds the things a switch is attached to: kernel devices, Go
// programs, and anything that reads and writes one frame at a time.
//
//	         switch worker                              far side
//	               |                                        |
//	Reader.Read <--+-- Device ---------- TAP or TUN --------+-- the kernel's stack
//	               +-- Packet ---------- packet socket -----+-- veth, network card
//	Writer.Write --+-- Pipe ------------ two bounded rings -+-- Pipe.Send, Pipe.Recv
//	               +-- RWC ------------- Read, Write -------+-- any io.ReadWriteCloser
//
// On macOS and Windows package port/water opens devices.
//
// Around a port goes [Buffered], a queue in front of a port whose Write may wait. Package capture
// writes what passes through a port into a file, and package port/porttest has a bad line.
//
// Each type here has the methods of vswitch.Port (Readers, Writer, MTU, Close) and
// Name; Device, Packet and Pipe are also Pausers. They work without a switch as well: read
// frames with a [frame.Batch], write them as [frame.Out], if they are what the port takes.
//
// # What goes through
//
// Frames are Ethernet, from the destination MAC on, without FCS; those of a TUN are
// IP packets. Frames shorter than an Ethernet header are handed over as they came:
// the switch counts them.
// [frame.Out.Tag] is a VLAN id, 0 for none; a Device or a Packet gathers the tag in behind the MAC
// addresses on the way out, while the frame itself is not touched. An 802.1Q tag
// that comes in stays in the frame.
//
// A port that gets a frame of another kind than its own, or one that it does not take, drops it
// with [frame.BadKind].
//
// # Superframes
//
// A [Device] or a [Packet] brings superframes of up to 64 KiB in, TCP segments or UDP datagrams that
// the kernel has not cut yet, and frames whose checksum is still to be completed:
// [frame.GSO] says which. It also takes them, and joins what can be joined: one system
// call carries dozens of frames. A Pipe, an RWC, and a Device or a Packet without offloads take
// ordinary frames only, as their [frame.Offloads] tell the switch, which cuts and completes the others.
// Only a whole frame is counted as sent: one of which a segment is lost is dropped,
// whatever became of its other segments.
//
// # Who may call what
//
// A Reader is used by one goroutine, and so is each Writer; different Writers of
// one port may be used at once. Everything else is safe for concurrent use. A
// frame that was read is valid until the same Reader is read again, and a Writer
// keeps no frame beyond the call.
package port
