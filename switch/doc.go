// Package vswitch implements the switch. Its folder is named switch, which is a Go keyword, so
// importers write
//
//	import vswitch "github.com/vxswitch/vxswitch/switch"
//
// A [Switch] forwards frames between Ports. Every Ethernet segment is a virtual switching instance
// ([VSI]), identified by its VNI: it has a MAC table, members, and slots for stages that inspect,
// answer or route its frames. [VSI.Attach] makes a port a member under a tag, which is the port's
// own name for the segment: the VNI on a tunnel, the VLAN on a trunk, 0 on an access port.
//
//	port (TAP, Pipe)  --tag: VLAN or 0--+
//	port (TAP, Pipe)  --tag: VLAN or 0--+-- VSI: FDB, members, slots
//	port (VTEP)       --tag: VNI--------+
//
// # The path of a frame
//
// The switch runs one worker for each receive queue of each port. The worker reads a batch and takes
// each frame through
//
//	worker.frame     find the attachment by port and tag, or by what its [Matcher] takes
//	circuit.decide   choose a Verdict, without I/O or a clock
//	worker.act       turn the verdict into entries in the lists of egress ports
//	worker.flush     write each list, and count what was sent and dropped
//
// Between read and write there is no queue, no lock and no copy, except for ports that cannot take a
// frame as it is (see [Offloader]). A VTEP is a port like any other: one look-up in the FDB finds a
// MAC, local or remote.
//
// Each limit applies where the thing it bounds begins. The FDB limits learned MACs. A locked port
// checks source MACs where they would be learned. Storm control acts where a frame is about to be
// flooded, so known unicast does not pay for it. Frames inside a VSI are untagged unless its
// [VLANMode] says otherwise.
//
// # Concurrency
//
// All methods of Switch, VSI and Attachment are safe for concurrent use. Changes take effect at the
// next batch. A [Stage] runs inside a worker, and may call only Inject, Notify and the methods of
// tables: Detach and Close wait for the workers, so calling them there would never return.
package vswitch
