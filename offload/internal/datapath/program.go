package datapath

// A Program is one of the three programs.
type Program uint8

// Programs.
const (
	PortIn   Program = iota // tcx ingress of a port, beyond whose device its host is: a veth end or a card
	PortOut                 // tcx egress of a port, whose device is the host's own interface: a TAP
	TunnelIn                // tcx ingress of an underlay device
)

// An Action is what a program has done with a frame.
type Action int32

// Actions (TCX_NEXT, TCX_DROP and TCX_REDIRECT of the kernel).
const (
	Miss     Action = -1 // on to the next program, or the stack
	Dropped  Action = 2
	Redirect Action = 7
)

// A Meta is what the kernel knows of a frame beside its bytes.
type Meta struct {
	Ifindex uint32 // where it is; 0 stands for 1, the loopback
	Mark    uint32
	GSOSize uint32 // of a superframe: payload of each segment
	GSOSegs uint32
	Tag     uint32 // type and TCI of the VLAN tag that the kernel has taken out of the bytes, such as 0x81000005; 0: none

	Complete bool // the card has summed up the bytes (CHECKSUM_COMPLETE); Linux 6.16, which then checks the sum of what is left
}
