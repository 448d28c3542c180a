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
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// node is one switch with one VTEP.
type node struct {
	name   string
	addr   netip.AddrPort
	sw     *vswitch.Switch
	vtep   *vtep.VTEP
	events *vswitch.Events
	neigh  map[frame.VNI]*arp.Responder
	vrf    *l3.VRF
	own    frame.MAC
}

// fabric is the nodes and what they run in.
type fabric struct {
	nodes []*node
	hosts []*host
	wg    sync.WaitGroup
}

// newFabric starts a node on each address, all on one UDP port: 4789, or if somebody
// has it, one that is free.
func newFabric(ctx context.Context, addrs ...string) (*fabric, error) {
	f := &fabric{}
	p := uint16(encap.VXLANPort)
	for i, a := range addrs {
		addr := netip.AddrPortFrom(netip.MustParseAddr(a), p)
		u, err := underlay.ListenUDP(addr, nil)
		if i == 0 && errors.Is(err, syscall.EADDRINUSE) {
			u, err = underlay.ListenUDP(netip.AddrPortFrom(addr.Addr(), 0), nil)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		p = u.LocalAddr().Port()
		if err := f.start(ctx, fmt.Sprintf("vtep%d", i+1), u); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

func (f *fabric) start(ctx context.Context, name string, u *underlay.UDP) error {
	v, err := vtep.New(&vtep.Config{Name: name}, u)
	if err != nil {
		return errors.Join(err, u.Close())
	}
	sw, err := vswitch.New(nil)
	if err != nil {
		return errors.Join(err, v.Close())
	}
	g, err := l3.NewGateway(nil)
	if err != nil {
		return errors.Join(err, v.Close())
	}
	f.nodes = append(f.nodes, &node{
		name: name, addr: u.LocalAddr(), sw: sw, vtep: v, events: sw.Events(), neigh: map[frame.VNI]*arp.Responder{},
		vrf: g.VRF("tenant"), own: frame.MAC{2, 0xee, 0, 0, 0, byte(len(f.nodes) + 1)},
	})
	f.wg.Go(func() { sw.Run(ctx) })
	return nil
}

// mesh joins nodes in a VNI: each floods to all the others (head-end replication).
func (f *fabric) mesh(vni frame.VNI, members ...int) error {
	var peers []netip.AddrPort
	for _, m := range members {
		peers = append(peers, f.nodes[m].addr)
	}
	for _, m := range members {
		n := f.nodes[m]
		vsi, err := n.sw.VSI(vni, nil)
		if err != nil {
			return err
		}
		if err := n.suppress(vsi); err != nil {
			return err
		}
		if _, err := vsi.Attach(n.vtep, uint32(vni)); err != nil {
			return err
		}
		if err := n.vtep.SetFlood(vni, peers...); err != nil { // its own address is left out
			return err
		}
	}
	return nil
}

// suppress has a node answer ARP for hosts that it knows to be behind other nodes.
func (n *node) suppress(vsi *vswitch.VSI) error {
	table, err := arp.NewTable(&arp.TableConfig{VNI: vsi.VNI(), Notify: n.sw.Notify})
	if err != nil {
		return err
	}
	r, err := arp.NewResponder(arp.Config{Table: table, Mode: arp.Suppress, Locate: vsi.FDB().Lookup})
	if err != nil {
		return err
	}
	n.neigh[vsi.VNI()] = r
	return vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: r}})
}

// gatewayMAC is the gateway's on every node and in every network: a host that moves finds
// it where it comes.
var gatewayMAC = frame.MAC{2, 0xff, 0, 0, 0, 1}

// route puts a gateway with an address into a VNI of every node that has it (distributed
// anycast).
func (f *fabric) route(vni frame.VNI, addr netip.Prefix) error {
	for _, n := range f.nodes {
		if n.neigh[vni] == nil {
			continue
		}
		vsi, err := n.sw.VSI(vni, nil)
		if err != nil {
			return err
		}
		i, err := n.vrf.NewInterface(l3.InterfaceConfig{
			VNI: vni, Addresses: []netip.Prefix{addr}, MAC: gatewayMAC, Own: n.own, Anycast: true,
			Neighbours: n.neigh[vni], Send: vsi.Send,
		})
		if err != nil {
			return err
		}
		// Frames to these MACs are the gateway's; frames from the common one may come from
		// other nodes too.
		if err := vsi.FDB().Set(gatewayMAC, 0, fdb.Static|fdb.Anycast); err != nil {
			return err
		}
		if err := vsi.FDB().Set(n.own, 0, fdb.Static); err != nil {
			return err
		}
		slots := vswitch.Slots{Neighbour: n.neigh[vni], Gateway: i}
		if err := vsi.Configure(vswitch.VSIConfig{Slots: slots}); err != nil {
			return err
		}
	}
	return nil
}

// host starts a host of a network on a node. Hosts of different networks that are on
// the same node have the same addresses.
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

// plug puts a host on a port of a node.
func (f *fabric) plug(h *host, at int) error {
	h.node = f.nodes[at]
	h.port = port.NewPipe(&port.PipeConfig{Name: h.name})
	vsi, err := h.node.sw.VSI(h.vni, nil)
	if err != nil {
		return err
	}
	if h.at, err = vsi.Attach(h.port, 0); err != nil {
		return err
	}
	p := h.port
	f.wg.Go(func() { h.serve(p) })
	return nil
}

// Close stops every node and waits for all that runs.
func (f *fabric) Close() {
	for _, n := range f.nodes {
		n.sw.Close()
		n.vtep.Close() // not attached, it is not the switch's to close
	}
	f.wg.Wait()
}
