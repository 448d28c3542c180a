package vswitch

import "github.com/vxswitch/vxswitch/frame"

// A Port is a source and sink of frames: a TAP, a VTEP, a Pipe into a Go program. The switch
// identifies a port by its Go value, so implementations are pointers.
//
// To write your own, implement these four methods, a [frame.Reader] and a [frame.Writer]; the example
// shows how short that can be. Its Writers get Ethernet frames that can be sent as they are: at most
// MTU bytes long, with complete checksums and with the VLAN tag of the attachment. A port that can
// take more says so by implementing Offloader. Its Readers may return any kind of frame that
// [frame.Frame] describes; the default is Ethernet.
//
// A port may also have a method Name() string, which logs and statistics use, and the methods of
// Pauser, Tunnel, Sender, Flooder and Grouper.
type Port interface {
	// Readers returns the receive queues, at least one. The switch calls it once, when the port is
	// attached, and runs one goroutine for each queue.
	Readers() []frame.Reader

	// Writer returns the transmit side for worker w, which may be any number from 0; a port with n
	// queues uses queue w mod n. The switch calls it once for each worker that sends to the port.
	// Each worker uses its Writer from one goroutine, several workers at the same time. Writers may
	// share descriptors but not scratch memory; one Writer for all is fine if its Write is safe
	// for concurrent use.
	Writer(w int) frame.Writer

	// MTU returns the length of the longest frame that the port takes towards peer, in bytes from
	// the destination MAC, without VLAN tag and FCS; for a superframe, that of each segment. On a
	// port for IP it is the length of the packet. Peer is 0 except on a Tunnel, where 0 stands for
	// flooded frames; see Flooder. The switch calls it for every frame, from any goroutine.
	MTU(peer uint16) int

	// Close makes every Read return net.ErrClosed, including one that is waiting. It is idempotent.
	// The switch calls it when the port is detached, and after a Read has failed.
	Close() error
}

// An Offloader is a Port whose Writers take more than ordinary frames, or frames of another kind; see
// [frame.Offloads]. The switch does the work that the port does not take, and drops frames that it
// cannot make fit, as [frame.BadKind], [frame.Short], [frame.TooBig] or [frame.BadHeader]. The switch
// calls Offloads once, when the port is attached. A port that wraps another must pass the method on.
type Offloader interface {
	Offloads() frame.Offloads
}

// A Tunnel is a Port with many peers, such as a VTEP. Its attachments are in split-horizon group 1
// unless configured otherwise. Frames from it have the tag in Frame.VNI and the peer in Frame.From.
type Tunnel interface {
	Port

	// Control returns what only the switch calls. It is always the same.
	Control() frame.TunnelControl

	// PeerName returns the name of a peer, which is its address, or "" if there is no such peer.
	PeerName(peer uint16) string
}

// A Leader is a Tunnel in which a number may stand for another peer, or for a group of peers.
type Leader interface {
	// Leads reports whether frames sent to the number to may reach the peer that sends as peer. If
	// so, that peer may send from a MAC whose static entry refers to the number to.
	Leads(to, peer uint16) bool
}

// A Sender is a Tunnel whose peers have addresses; see Role.Shared.
type Sender interface {
	// Sender returns the address, without a port, from which frames of a peer come; zero if there is no such peer. The switch calls
	// it for flooded frames, from any goroutine.
	Sender(peer uint16) frame.Endpoint
}

// A Flooder is a Tunnel whose peers take frames of different lengths. For other tunnels MTU(0) holds
// for all peers.
type Flooder interface {
	// FloodMTU returns the length of the longest frame that some peers on the flood list of a tag
	// take, and of the longest that all of them take. A frame in between is flooded, and the tunnel
	// counts the copies that do not fit.
	FloodMTU(tag uint32) (some, all int)
}

// A Grouper is a Tunnel whose flood lists have peers for single group MACs. To such a MAC a Selector selects no other peers of it.
type Grouper interface {
	HasGroup(tag uint32, mac frame.MAC) bool // the switch calls it for frames that a Selector selects, from any goroutine
}

// A Pauser is a Port that can be detached without being closed. Between Pause and Resume every Read
// returns frame.ErrPaused.
type Pauser interface {
	Pause()
	Resume()
}
