package frame

// A Reader is one receive queue. Read waits until there is at least one frame and
// fills b, as [Batch] says; it invalidates the frames of the Read before. Until then their memory
// belongs to who reads, and may be written to. It is used by one goroutine. After the port it belongs to is closed it returns an error that
// errors.Is(err, net.ErrClosed); while the port is paused, [ErrPaused]. Any error ends the port.
//
// A reader that says no more than that hands over Ethernet frames, from the destination MAC on and
// without FCS. Kind says that it is an IP packet, GSO that it is a superframe or its checksum not
// finished; a VLAN tag stays in the frame.
//
// A reader that refuses a packet it has read says so in the frame's Drop, so that
// the switch counts it.
type Reader interface {
	Read(b *Batch) error
}

// Out is one frame on its way out of one port.
type Out struct {
	F    *Frame
	Peer uint16 // 0 = none; on a tunnel: its flood list
	Skip uint16 // peer that the flood list leaves out: where the frame came from
	Tag  uint32 // the port's name for the network: VNI on a VTEP, VLAN on a trunk if it takes OffloadVLAN, else 0
	Drop Reason // set by the Writer: why it was not sent
}

// A Writer sends frames out of a port, in order. It gets what the port takes, see [Offloads]: of
// an ordinary port out[i].F.Bytes() is what to send, and nothing else need be looked at. It sets
// Drop on the frames it did not send.
//
// It must not change a frame, its Hash aside: other ports may be sending the same one. It must keep
// neither out nor a frame once it has returned. It must not wait: when there is no room it drops
// with [PortFull]. The error says that the port is broken as a whole; which frames were not sent
// is still told by their Drop. It is used by one goroutine.
type Writer interface {
	Write(out []Out) error
}

// Datagram is one tunnel packet, or one run of equal ones, on its way to one or
// many endpoints.
type Datagram struct {
	Parts [][]byte   // borrowed, shared by all To: header in the writer's scratch, payload in the frame
	To    []Endpoint // several: head-end replication, without a copy
	Seg   uint16     // 0, or the size of each segment of a run
	Flow  uint16     // entropy for the outer source port: equal for all packets of a flow
	TOS   uint8
	TTL   uint8 // 0 = the underlay's default
	DF    bool
	Set   uint8 // transmit sockets to use: 0 = the underlay's own, else a number it gave

	Lost uint16 // set by the Sender: how many of To it was not sent to
	Drop Reason // set by the Sender when Lost > 0: why, for the last one
}

// A Sender puts datagrams on the underlay, in order, and waits for nothing. An
// endpoint that cannot be reached costs only its own copy. The error is for an
// underlay that is broken as a whole; Lost is then set too. It is used by one
// goroutine.
type Sender interface {
	Send(ds []Datagram) error
}
