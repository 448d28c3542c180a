package underlay

import "slices"

// Sending is what the datagrams of one set of transmit sockets have in common, for those who send in the underlay's place.
type Sending struct {
	SrcPorts []uint16 // source ports in use; a flow has one
	NoSum    bool     // a single datagram has no UDP checksum
	Mark     uint32   // SO_MARK
	Device   string   // bound to, "" = none
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
	return Sending{slices.Clone(*ports), s.lone&withSum == 0, u.cfg.Mark, u.cfg.Device}, true
}
