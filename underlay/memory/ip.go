package memory

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// ListenIP makes an underlay for IP packets, as [underlay.ListenIP] does, on a local
// address, which may not be a wildcard; a zone is ignored. Its LocalAddr has no port, and
// the kind of a frame it receives is that of the packet. SrcPorts means nothing here. An
// address that has one already is an error that errors.Is syscall.EADDRINUSE; one that has
// underlays with ports is not taken by them.
func (n *Network) ListenIP(local netip.Addr, cfg *Config) (*Underlay, error) {
	return n.listen(netip.AddrPortFrom(local, 0), cfg, true)
}

// Unreachable has f called as [underlay.IP.Unreachable] does: by the network, while nothing needs to
// be sent, for an IP packet to an address where nobody listens. What is lost on its way is
// told by nobody.
func (m *Underlay) Unreachable(f func(to frame.Endpoint, quoted []byte)) { m.unreachable.Store(&f) }

// reportLost tells the Unreachable func as report does the other.
func (m *Underlay) reportLost(to *frame.Endpoint, quoted []byte) {
	m.refused.Add(1)
	if f := m.unreachable.Load(); f != nil && !m.isClosed() {
		(*f)(*to, quoted)
	}
}

// ip reports whether it is an IP packet, as opposed to a UDP datagram.
func (x *meta) ip() bool { return x.src.Port == 0 }
