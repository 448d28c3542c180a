package daemon

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/hosted"
	"github.com/vxswitch/vxswitch/node"
)

// hosted returns the shape of mode tap.
func (d *Daemon) hosted(t node.Tunnel, up *uplink) (flannel.Shape, error) {
	return hosted.New(&hosted.Config{Node: d.o.Node, Tunnel: t, Device: d.cfg.Device, Persistent: true, Link: up.name, LinkMTU: up.mtu, Log: d.log})
}

// forget removes what mode tap has left on the host if Run has ended with an error, or a former process did.
func (d *Daemon) forget() error {
	if d.cfg.Mode != TAP {
		return nil
	}
	var networks []netip.Prefix
	if p := d.Plane(); p != nil {
		if n := p.Status().Network; n != nil {
			networks = []netip.Prefix{n.IPv4.Network, n.IPv6.Network}
		}
	}
	return hosted.Forget(d.cfg.Device, networks)
}
