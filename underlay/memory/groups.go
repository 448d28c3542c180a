package memory

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// Join makes m a member of a multicast group, like [underlay.UDP.Join]: it receives what others send to the group on m's
// port. The copies of a datagram arrive in the order of the members' addresses, each over the Link from the sender to the
// member. Of the Link to the group only the MTU counts.
func (m *Underlay) Join(group netip.Addr) error {
	ip, err := datagrams.Group("memory", group, m.Is4())
	if err != nil {
		return err
	}
	if m.ip {
		return noGroups(group)
	}
	n := m.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.members[m.at.key] != m {
		return net.ErrClosed
	}
	if m.users[ip]++; m.users[ip] == 1 {
		all := n.groups[ip]
		i, _ := slices.BinarySearchFunc(all, m, compareMembers)
		n.groups[ip] = slices.Insert(slices.Clone(all), i, m)
	}
	return nil
}

// Leave undoes one Join.
func (m *Underlay) Leave(group netip.Addr) error {
	ip, err := datagrams.Group("memory", group, m.Is4())
	if err != nil {
		return err
	}
	n := m.net
	n.mu.Lock()
	defer n.mu.Unlock()
	switch m.users[ip] {
	case 0:
		return datagrams.NotJoined("memory", group)
	case 1:
		n.dropGroup(m, ip)
	default:
		m.users[ip]--
	}
	return nil
}

// dropGroup ends a membership; the network is locked.
func (n *Network) dropGroup(m *Underlay, group [16]byte) {
	delete(m.users, group)
	n.groups[group] = slices.DeleteFunc(slices.Clone(n.groups[group]), func(x *Underlay) bool { return x == m })
	if len(n.groups[group]) == 0 {
		delete(n.groups, group)
	}
}

func compareMembers(a, b *Underlay) int {
	x, y := &a.at.key, &b.at.key
	if c := bytes.Compare(x.IP[:], y.IP[:]); c != 0 {
		return c
	}
	return int(x.Port) - int(y.Port)
}

// sendToGroup sends a datagram to each member of a multicast group; the network is locked. Datagrams too long for a router
// on the way are lost without a report (RFC 1112, section 7.2).
func (n *Network) sendToGroup(from *Underlay, m meta, df bool, parts [][]byte, packet int) {
	heard := false
	for _, to := range n.groups[m.dst.IP] {
		key := to.at.key
		if key.Port != m.dst.Port || to == from && !from.loop {
			continue
		}
		heard = true
		p := pair{m.src.Host(), key.Host()}
		l, ok := n.special[p]
		if !ok {
			l = n.def
		}
		m.at = key
		switch st := n.link(p); {
		case l.Cut:
			n.stats.Cut++
		case st.chance(l.Loss):
			n.stats.Lost++
		case df && l.PathMTU > 0 && packet > l.PathMTU:
			n.stats.TooLong++
		default:
			n.copies(st, &l, m, parts)
		}
	}
	if !heard {
		n.stats.NoListener++
	}
}

func noGroups(group netip.Addr) error {
	return fmt.Errorf("memory: multicast group %v: an IP underlay has none: %w", group, errors.ErrUnsupported)
}
