package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// minMTU is what every IPv4 link carries (RFC 791).
const minMTU = 68

// tunnel runs the tunnel until ctx is done or a port fails:
//
//	kernel -- TAP --- segment ----- VTEP -- UDP -- peers
//	kernel -- TUN --- its wire ---- VTEP -- raw IP, or UDP -- one peer
func tunnel(ctx context.Context, o options, out, notes io.Writer) error {
	var c carrier
	n, err := node.New(&node.Options{Offload: c.open})
	if err != nil {
		return err
	}
	defer n.Close()
	v, err := n.Tunnel(o.node.Tunnels[0].Name, o.node.Tunnels[0])
	if err != nil {
		return localError(o, cause(err))
	}
	mtu, err := deviceMTU(o.node, v)
	if err != nil {
		return err
	}
	if p := &o.node.Ports[0]; p.Type != node.PortVeth { // of a pair that it makes, the node does so, and leaves a veth that exists as it is
		p.MTU = mtu
	}
	if err := apply(n, o); c.why != nil && errors.Is(err, c.why) {
		return datapathError(c.why)
	} else if err != nil {
		return deviceError(o, cause(err))
	}
	if _, why := n.Datapath(); why != nil {
		complain(notes, fmt.Errorf("-datapath auto: flows stay in user space: %w", why))
	}
	if o.pcap != "" {
		f, err := os.Create(o.pcap)
		if err != nil {
			return fmt.Errorf("-pcap: %w", err)
		}
		defer f.Close()
		if err := n.Capture().Start(f); err != nil {
			return fmt.Errorf("-pcap: %w", err)
		}
	}
	asked := make(chan os.Signal, 1)
	notifyStats(asked)
	defer signal.Stop(asked)
	var every <-chan time.Time
	if o.every > 0 {
		t := time.NewTicker(o.every)
		defer t.Stop()
		every = t.C
	}
	failed := make(chan error, 1)
	go watch(n.Switch().Events(), failed)
	go n.Run(context.Background()) // not ctx: statistics are printed before the ports are closed
	fmt.Fprintln(out, ready(o.node, mtu))
	for {
		select {
		case <-asked:
			fmt.Fprintln(out, takeStats(n, v, c.carries))
			continue
		case <-every:
			fmt.Fprintln(out, takeStats(n, v, c.carries))
			continue
		case <-ctx.Done():
		case err = <-failed:
		}
		last := takeStats(n, v, c.carries)
		n.Switch().Close()
		fmt.Fprintln(out, last)
		if e := n.Capture().Stop(); e != nil && err == nil {
			err = fmt.Errorf("-pcap: %w", e)
		}
		return err
	}
}

// deviceMTU returns the MTU of the device: -mtu, or what fits the tunnel.
func deviceMTU(cfg *node.Config, v *vtep.VTEP) (int, error) {
	p, t := &cfg.Ports[0], &cfg.Tunnels[0]
	if p.MTU != 0 {
		return p.MTU, nil
	}
	mtu := cfg.Segments[0].Fits(v)
	if p.Type != node.PortTUN {
		mtu -= encap.EthernetLen // of the device: without the inner Ethernet header
	}
	if mtu < minMTU {
		outer := v.MTU(0) + t.Type.Outer(t.Local.Is6())
		return 0, fmt.Errorf("the underlay MTU of %v, %d, leaves an inner MTU of %d: raise it by at least %d", t.Local, outer, mtu, minMTU-mtu)
	}
	return mtu, nil
}

// apply makes the rest of the node. Without -queues, it opens a persistent device with one or several queues, as the
// device was made.
func apply(n *node.Node, o options) error {
	err := n.Apply(o.node)
	if !errors.Is(err, syscall.EINVAL) || o.queues {
		return err
	}
	if p := &o.node.Ports[0]; p.Queues > 1 {
		p.Queues = 1
	} else {
		p.Queues = 2
	}
	return n.Apply(o.node)
}

// ready returns the line for a tunnel that is ready.
func ready(cfg *node.Config, mtu int) string {
	t, dev := &cfg.Tunnels[0], cfg.Ports[0].Name
	if t.Type == encap.TypeIPIP {
		return fmt.Sprintf("ready dev=%s type=%v local=%v mtu=%d", dev, t.Type, t.Local, mtu)
	}
	return fmt.Sprintf("ready dev=%s type=%v id=%d local=%v mtu=%d", dev, t.Type, cfg.Segments[0].VNI, t.AddrPort(), mtu)
}

// watch reports the first port that fails, until the switch is closed.
func watch(events *vswitch.Events, failed chan<- error) {
	for {
		ev, err := events.Next(context.Background())
		if err != nil {
			return
		}
		if ev.Kind == frame.EventPortDown && ev.Err != nil {
			failed <- fmt.Errorf("the tunnel is down: %w: start p2p again", ev.Err)
			return
		}
	}
}
