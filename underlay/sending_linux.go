package underlay

import (
	"slices"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// Sending is what the datagrams of one set of transmit sockets have in common, for those who send in the underlay's place.
type Sending struct {
	SrcPorts []uint16 // source ports in use; a flow has one
	NoSum    bool     // a single datagram has no UDP checksum
	Mark     uint32   // SO_MARK
	Device   string   // bound to, "" = none
	ZeroSum  bool     // received datagrams without a UDP checksum are accepted

	// Namespace is the number of the network namespace of the sockets (SO_NETNS_COOKIE), 0 if the kernel does not say.
	Namespace uint64
}

// Sending returns what datagrams of a set (Datagram.Set) have in common. It is false if there is no such set, or its sockets
// cannot be opened.
func (u *UDP) Sending(set uint8) (Sending, bool) {
	s := u.sets.Get(set)
	if s == nil || u.openTx(s.ports, s.lone).err != nil {
		return Sending{}, false
	}
	ports := s.ports.ports.Load()
	if ports == nil { // closed
		return Sending{}, false
	}
	ns, err := sys.Namespace(u.readers[0].sock.raw)
	return Sending{
		SrcPorts: slices.Clone(*ports), NoSum: s.lone&withSum == 0, Mark: u.cfg.Mark, Device: u.cfg.Device,
		ZeroSum: u.is4 || u.cfg.ZeroChecksum6RX, Namespace: ns,
	}, err == nil
}
