package frame

// A Reader is a receive queue. Read waits for at least one frame and fills b, as [Batch] says. It invalidates
// the frames of the previous Read; until then the caller may write to their memory. Only one goroutine uses a
// Reader. After Close of its port Read returns net.ErrClosed, and while the port is paused, [ErrPaused]. Any
// other error ends the port.
//
// By default frames are Ethernet, from the destination MAC, without FCS, and with their VLAN tag. A Reader sets
// Kind for IP packets, and GSO for superframes and unfinished checksums.
//
// A Reader that refuses a packet sets Drop of the frame, and the switch counts it.
type Reader interface {
	Read(b *Batch) error
}

// An Out is a frame to be sent out of one port.
type Out struct {
	F    *Frame
	Peer uint16 // 0 = none; on a tunnel, its flood list
	Skip uint16 // peer to leave out of the flood list: the one that the frame came from
	Tag  uint32 // the port's name for the segment: VNI on a VTEP, VLAN on a trunk that takes OffloadVLAN (with ServiceTag), else 0
	Drop Reason // set by the Writer if the frame was not sent
}

// ServiceTag, beside a VLAN in the tag of an attachment, means the service tags of that VLAN (IEEE 802.1ad, EtherType 0x88a8), which
// are the outer ones of Q-in-Q, instead of its 802.1Q tags.
const ServiceTag = 1 << 16

// VLANTag returns the tag of a frame that leaves by a trunk, as it is on the wire behind the MACs: EtherType, priority
// and VLAN (IEEE 802.1Q, section 9.6). It is 0 if the frame gets none.
func (o *Out) VLANTag() uint32 {
	if o.Tag == 0 {
		return 0
	}
	tag := uint32(o.F.Priority&7)<<13 | o.Tag&0xfff
	if o.Tag&ServiceTag != 0 {
		return 0x88a8<<16 | tag
	}
	return 0x8100<<16 | tag
}

// A Writer sends frames out of a port, in order. It gets frames that the port takes; see [Offloads]. A Writer
// of an ordinary port sends out[i].F.Bytes() and can ignore everything else. It sets Drop on frames that it
// did not send.
//
// A Writer must not change a frame, except its Hash, because other ports may be sending it too. It must not
// keep out or a frame after it returns. It must not wait: if there is no room, it drops with [PortFull]. An
// error means that the port as a whole is broken; Drop still says which frames were not sent. Only one
// goroutine uses a Writer.
type Writer interface {
	Write(out []Out) error
}

// A TunnelControl is what the switch does with a tunnel that it attaches.
type TunnelControl interface {
	// Open makes the tunnel accept frames with a tag, and Shut makes it stop.
	Open(tag uint32) error
	Shut(tag uint32)

	// Retire begins to remove learned peers for which named returns false, and returns their numbers.
	// From then on no frame comes in from them, except in Batches whose Gone says so. The switch
	// waits until no worker knows the numbers, flushes their entries, waits again and calls Free.
	Retire(named func(peer uint16) bool) []uint16
	Free(peers []uint16)

	// Tell sets the function that the tunnel calls with each EventPeerUp and EventLocalChanged, in order, with port 0
	// in Dest; first, at once, for all its peers. f does not wait, and must not call the tunnel, except for PeerName;
	// nil ends the calls.
	Tell(f func(Event))

	// Peers returns the numbers of all peers, next hops and groups that Retire has not returned.
	Peers() []uint16
}

// A Datagram is a tunnel packet, or a run of packets of equal size, for one or more endpoints.
type Datagram struct {
	Parts [][]byte   // borrowed, and the same for all To: headers in scratch memory, payload in the frame
	To    []Endpoint // several for head-end replication, without a copy
	Seg   uint16     // 0, or the size of each segment of a run
	Flow  uint16     // entropy for the outer source port: equal for all packets of a flow
	TOS   uint8
	TTL   uint8 // 0 = the underlay's default
	DF    bool
	Set   uint8 // transmit sockets: 0 = the underlay's own, else a number that it returned

	Lost uint16 // set by the Sender: the number of endpoints in To that were not sent to
	Drop Reason // set by the Sender if Lost > 0: the reason for the last of them
}

// A Sender sends datagrams on the underlay, in order, without waiting. An unreachable endpoint loses only its own
// copy. An error means that the underlay as a whole is broken; Lost is set then too. Only one goroutine uses a
// Sender.
type Sender interface {
	Send(ds []Datagram) error
}
