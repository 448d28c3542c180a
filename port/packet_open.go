package port

import (
	"cmp"
	"fmt"

	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/setting"
)

// packetBuffer is the default size of a buffer in bytes: dozens of superframes.
const packetBuffer = 4 << 20

// OpenPacket opens a port on the network interface name, at most 15 bytes long: an existing Ethernet
// interface, such as a veth or a network card. It may be down, and is not changed. A nil cfg is the zero
// value. The caller closes the Packet, or attaches it to a switch.
//
// The error wraps [os.ErrPermission] if CAP_NET_RAW is missing, [syscall.ENODEV] if the interface does not
// exist, and [errors.ErrUnsupported] on systems other than Linux.
//
// A virtio header cannot describe two offloads of a veth (Linux 6.18). Superframes of the kernel's own
// tunnels are dropped with [frame.BadHeader], and SCTP checksums are wrong. If guests send these, switch the
// offloads off at their end of the veth ("ethtool -K eth0 tx-udp_tnl-segmentation off
// tx-udp_tnl-csum-segmentation off", and "tx-checksum-sctp off tx-sctp-segmentation off").
func OpenPacket(name string, cfg *PacketConfig) (*Packet, error) {
	var c PacketConfig
	if cfg != nil {
		c = *cfg
	}
	p := &Packet{dev: sys.NewPacketInterface("port", "PacketConfig", name, c.Control)}
	err := c.Check()
	switch {
	case len(name) == 0 || len(name) > 15: // IFNAMSIZ - 1
		return nil, fmt.Errorf("port: interface name %q: want 1 to 15 bytes", name)
	case err == nil:
		err = inNamespace("PacketConfig", c.Namespace, func() error { return p.attach(c) })
	}
	if err != nil {
		p.dev.Close()
		return nil, p.dev.Wrap(err)
	}
	p.drops = make([]dropCount, len(p.queues))
	p.dev.Follow()
	return p, nil
}

// Check returns the errors for which [OpenPacket] refuses the settings.
func (c *PacketConfig) Check() error {
	w := setting.Of("PacketConfig")
	checkQueues(w, c.Queues, c.BusyPoll)
	w.Number("RecvBuffer", c.RecvBuffer, 1, maxPacketBuffer, packetBuffer)
	w.Number("SendBuffer", c.SendBuffer, 1, maxPacketBuffer, packetBuffer)
	checkLeave(w, c.Leave)
	return w.Err()
}

// maxPacketBuffer is the largest size that the kernel can double in an int.
const maxPacketBuffer = 1<<30 - 1

// attach opens the sockets, in the namespace of the calling thread.
func (p *Packet) attach(c PacketConfig) (err error) {
	if !c.NoOffload {
		p.header, p.whole, p.uso = gso.VirtioLen, true, sys.PacketUSO()
	}
	if p.send, err = p.dev.Open(sys.PacketMode{Vnet: p.header > 0, Buffer: cmp.Or(c.SendBuffer, packetBuffer)}); err != nil {
		return err
	}
	if err := p.dev.Find(p.send); err != nil {
		return err
	}
	if err := p.send.Bind(p.dev.Index, false); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	queues := max(c.Queues, 1)
	for range queues {
		s, err := p.dev.Receive(sys.PacketMode{Shut: len(c.Leave) > 0, Vnet: p.header > 0, Buffer: cmp.Or(c.RecvBuffer, packetBuffer)}, queues)
		if err != nil {
			return err
		}
		q := &packetQueue{PacketSocket: s, p: p, head: make([]byte, p.header)}
		q.reader.open(p, s.Conn, q.next)
		q.reader.busy.Max = c.BusyPoll
		p.queues = append(p.queues, q)
	}
	if c.Promiscuous {
		if err := p.queues[0].Promiscuous(p.dev.Index); err != nil {
			return fmt.Errorf("PacketConfig.Promiscuous: %w", err)
		}
	}
	// The sockets were shut: with several queues each would have received all frames before all were in the group, and
	// with Leave those that are not for the port. This filter lets frames in.
	if queues > 1 || len(c.Leave) > 0 {
		return p.leave(c.Leave)
	}
	return nil
}
