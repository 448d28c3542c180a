package daemon

import (
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/hosted"
	"github.com/vxswitch/vxswitch/node"
)

// hosted returns the shape of mode tap.
func (d *Daemon) hosted(t node.Tunnel, up *uplink) (flannel.Shape, error) {
	return hosted.New(&hosted.Config{Node: d.o.Node, Tunnel: t, Device: d.cfg.Device, Persistent: true, Link: up.name, LinkMTU: up.mtu, Log: d.log})
}
