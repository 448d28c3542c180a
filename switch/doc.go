// Package vswitch is the switch. Its folder is called switch, as the thing it
// holds; switch is a Go keyword, hence the package's name and the import
//
//	import vswitch "github.com/vxswitch/vxswitch/switch"
//
// A [Switch] joins Ports through virtual switching instances. A [VSI] is one
// Ethernet segment, known by its VNI: a MAC table, the attachments that are members
// of it, and the slots its frames pass. [VSI.Attach] makes a member: it ties a port,
// under the port's own name for a network (the tag), to the VSI.
//
//	port (TAP, Pipe)  --tag: VLAN or 0--+
//	port (TAP, Pipe)  --tag: VLAN or 0--+-- VSI: FDB, members, slots
//	port (VTEP)       --tag: VNI--------+
//
// # A frame's way
//
// The switch runs one worker on each receive queue of each port. For every batch it
// reads, the worker takes each frame through
//
//	worker.frame     which attachment is it on? (port, tag)
//	circuit.decide   what becomes of it: a Verdict, without I/O and without a clock
//	worker.act       the verdict becomes entries in the lists of egress ports
//	worker.flush     each list is written, sent and dropped frames are counted
//
// There is no queue, no lock and no copy between read and write, but for what a port does not take
// (see [Offloader]). A VTEP is a port like any other: one look-up in the FDB says where a MAC is,
// local or remote.
//
// Limits stand where what they bound begins: learned MACs in the FDB, source MACs of a
// locked port where they would be learned, storm control where a frame becomes a flood,
// so that it costs known unicast nothing. Frames of a VSI are untagged, unless its
// [VLANMode] says otherwise.
//
// # What may be called from where
//
// Every method of Switch, VSI and Attachment is safe for concurrent use and takes
// effect at the next batch, under traffic. From a [Stage], which runs inside a
// worker, only Inject, Notify and the methods of tables may be called: Detach and Close wait
// for the workers.
package vswitch
