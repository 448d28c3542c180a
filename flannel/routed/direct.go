package routed

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
)

// isDirect reports whether nodes on one link send to each other without a tunnel.
func isDirect(b *flannel.Backend) bool { return b.Type == "host-gw" || b.DirectRouting }

// onLink returns the prefixes of the gateway in the segment Direct, none if nobody sends without a tunnel. It is an error if nodes on
// our link, which do so whether we do or not, have nobody to send to.
func (s *Shape) onLink(n *flannel.Network, own *flannel.Own) ([]netip.Prefix, error) {
	c, b := &s.cfg, &n.Backend
	switch {
	case !isDirect(b):
		return nil, nil
	case c.Direct == 0:
		return nil, fmt.Errorf("routed: direct: no segment: one is needed with %s, since nodes on our link send without a tunnel", how(b))
	}
	list := c.addresses()
	for _, e := range []flannel.End{own.IPv4, own.IPv6} {
		if e.PublicIP.IsValid() && !has(list, e.PublicIP) {
			return nil, fmt.Errorf("routed: direct: segment %d: a gateway in the VRF %q with the address %v is needed with %s, since nodes on our link send to it", c.Direct, c.VRF, e.PublicIP, how(b))
		}
	}
	for i := range list {
		list[i] = list[i].Masked()
	}
	return list, nil
}

// follow has Links tell of the prefixes that become others than known, as gateways come and go, until stop is called.
func (s *Shape) follow(n *flannel.Network, own *flannel.Own, known []netip.Prefix) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	events := s.cfg.Node.Switch().Events(frame.EventGatewayUp, frame.EventGatewayDown)
	var running sync.WaitGroup
	running.Go(func() {
		defer events.Close()
		for {
			if links := s.found(n, own); !slices.Equal(links, known) {
				select {
				case s.links <- links:
					known = links
				case <-ctx.Done():
					return
				}
			}
			if _, err := events.NextAll(ctx); err != nil {
				return
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

// found is onLink after the start: what is wrong then is said, and there are no links.
func (s *Shape) found(n *flannel.Network, own *flannel.Own) []netip.Prefix {
	links, err := s.onLink(n, own)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != s.said && err != nil {
		s.cfg.Log.Warn("flannel: nodes on the link do not reach this one", "err", err)
	}
	s.said = text
	return links
}

// addresses returns those of the gateway in the segment Direct, nil without one.
func (c *Config) addresses() (list []netip.Prefix) {
	for _, i := range c.Node.Interfaces() {
		if c.Direct != 0 && i.VNI() == c.Direct && i.VRFName() == c.VRF {
			list = i.Config().Addresses
		}
	}
	return list
}

func has(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Addr() == a })
}

// device returns that of the packet port in the segment Direct, "" without one.
func (c *Config) device() string {
	cfg := c.Node.Config()
	for _, g := range cfg.Segments {
		for _, m := range g.Members {
			if g.VNI == c.Direct && m.VLAN == 0 && slices.ContainsFunc(cfg.Ports, func(p node.Port) bool { return p.Name == m.Port && p.Type == node.PortPacket }) {
				return m.Port
			}
		}
	}
	return ""
}

// how is what makes nodes send without a tunnel.
func how(b *flannel.Backend) string {
	if b.Type == "host-gw" {
		return "backend host-gw"
	}
	return "DirectRouting"
}
