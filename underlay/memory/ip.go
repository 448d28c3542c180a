package memory

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// ListenIP opens an underlay for IP packets on a local address, like [underlay.ListenIP]. The address must not be a
// wildcard; a zone is ignored. LocalAddr has no port, and the kind of a received frame is that of the packet. SrcPorts has
// no effect. If the address has an IP underlay already, the error is syscall.EADDRINUSE; UDP underlays do not conflict.
func (n *Network) ListenIP(local netip.Addr, cfg *Config) (*Underlay, error) {
	return n.listen(netip.AddrPortFrom(local, 0), cfg, true)
}

// Unreachable sets the function to call like [underlay.IP.Unreachable] does. The network calls it, independent of Sends, for
// IP packets to an address where nobody listens. Packets lost on the way are not reported.
func (m *Underlay) Unreachable(f func(to frame.Endpoint, quoted []byte)) { m.unreachable.Store(&f) }

// reportLost calls the Unreachable function as report calls that of PathMTU.
func (m *Underlay) reportLost(to *frame.Endpoint, quoted []byte) {
	m.refused.Add(1)
	if f := m.unreachable.Load(); f != nil && !m.isClosed() {
		(*f)(*to, quoted)
	}
}

// ip reports whether it is an IP packet and not a UDP datagram.
func (x *meta) ip() bool { return x.src.Port == 0 }
