package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// site is a node with a tunnel.
type site struct {
	*node.Node
	name   string
	addr   netip.Addr
	tunnel *vtep.VTEP
	events *vswitch.Events
}

// fabric has the sites.
type fabric struct {
	sites []*site
	hosts []*host
	wg    sync.WaitGroup
}

// newFabric starts a node on each address, all on the same UDP port: 4789, or the next free one.
func newFabric(ctx context.Context, addrs ...string) (*fabric, error) {
	for udp := uint16(encap.VXLANPort); ; udp++ {
		f := &fabric{}
		err := f.start(ctx, udp, addrs)
		if err == nil {
			return f, nil
		}
		f.Close()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
	}
}

func (f *fabric) start(ctx context.Context, udp uint16, addrs []string) error {
	for i, a := range addrs {
		n, err := node.New(nil)
		if err != nil {
			return err
		}
		s := &site{Node: n, name: fmt.Sprintf("vtep%d", i+1), addr: netip.MustParseAddr(a), events: n.Switch().Events()}
		f.sites = append(f.sites, s)
		s.tunnel, err = n.Tunnel(s.name, node.Tunnel{Local: s.addr, Config: vtep.Config{Port: udp}})
		if err != nil {
			return err
		}
		f.wg.Go(func() { n.Run(ctx) })
	}
	return nil
}

// gatewayMAC is the MAC of the gateway on every site and in every network, so that hosts can move.
var gatewayMAC = frame.MAC{2, 0xff, 0, 0, 0, 1}

// network joins sites in a VNI. Each floods to all others (head-end replication), answers ARP for hosts behind them,
// and is the same gateway, if there is one (distributed anycast).
func (f *fabric) network(vni frame.VNI, gateway netip.Prefix, members ...int) error {
	for _, m := range members {
		s := f.sites[m]
		seg, err := s.Segment(vni, &node.Segment{Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}}})
		if err != nil {
			return err
		}
		for _, peer := range members {
			if peer == m {
				continue
			}
			if err := seg.Join(s.tunnel, f.sites[peer].addr); err != nil {
				return err
			}
		}
		if !gateway.IsValid() {
			continue
		}
		err = seg.Gateway("tenant", node.Gateway{
			Addresses: []netip.Prefix{gateway}, MAC: gatewayMAC, Anycast: true,
			VTEPMAC: frame.MAC{2, 0xee, 0, 0, 0, byte(m + 1)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// host starts a host of a network on a site. Hosts of different networks on the same site have the same addresses.
func (f *fabric) host(network string, vni frame.VNI, at int) (*host, error) {
	h := &host{
		name: fmt.Sprintf("%s%d", network, at+1),
		mac:  frame.MAC{2, 0, 0, 0, 0, byte(at + 1)},
		ip:   netip.AddrFrom4([4]byte{192, 168, 0, byte(at + 1)}),
		vni:  vni, heard: make(chan string, 64),
	}
	if network == "green" {
		h.mac[4], h.ip = 1, netip.AddrFrom4([4]byte{192, 168, 1, byte(at + 1)})
	}
	f.hosts = append(f.hosts, h)
	return h, f.plug(h, at)
}

// plug connects a host to a port of a site.
func (f *fabric) plug(h *host, at int) (err error) {
	h.site = f.sites[at]
	h.port = port.NewPipe(&port.PipeConfig{Name: h.name})
	if h.segment, err = h.site.Segment(h.vni, nil); err != nil {
		return err
	}
	if err := h.segment.Add(h.port, nil); err != nil {
		return err
	}
	p := h.port
	f.wg.Go(func() { h.serve(p) })
	return nil
}

// Close stops every node and waits for its goroutines.
func (f *fabric) Close() {
	for _, s := range f.sites {
		s.Close()
	}
	f.wg.Wait()
}
