package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// minMTU is what every IPv4 link carries (RFC 791).
const minMTU = 68

// tunnel runs the tunnel until ctx is done or a port fails:
//
//	kernel -- TAP --- VSI ---- VTEP -- UDP -- peers
//	kernel -- TUN --- Wire --- VTEP -- raw IP, or UDP -- one peer
func tunnel(ctx context.Context, o options, out io.Writer) error {
	u, err := listen(o)
	if err != nil {
		return localError(o, err)
	}
	defer u.Close()
	capture, err := port.NewCapture(nil)
	if err != nil {
		return err
	}
	defer capture.Close()
	v, err := vtep.New(&o.vtep, capture.Underlay(u))
	if err != nil {
		return err
	}
	mtu := o.mtu
	if mtu == 0 {
		mtu = v.MTU(0)
		if !o.tun {
			mtu -= encap.EthernetLen // of the device: without the inner Ethernet header
		}
		if o.vsi.InnerVLAN == vswitch.VLANPass {
			mtu -= encap.VLANTagLen // a VLAN device on top has the same MTU
		}
	}
	if mtu < minMTU {
		return fmt.Errorf("the MTU towards %v, %d, leaves an MTU of %d inside the tunnel: raise it by %d or more", o.local, u.MTU(), mtu, minMTU-mtu)
	}
	device, err := open(o, mtu)
	if err != nil {
		return deviceError(o, mtu, err)
	}
	defer device.Close()
	dev, err := capture.Port(device)
	if err != nil {
		return err
	}
	if o.pcap != "" {
		f, err := os.Create(o.pcap)
		if err != nil {
			return fmt.Errorf("-pcap: %w", err)
		}
		defer f.Close()
		if err := capture.Start(f); err != nil {
			return fmt.Errorf("-pcap: %w", err)
		}
	}

	sw, err := vswitch.New(nil)
	if err != nil {
		return err
	}
	defer sw.Close()
	vsi, err := sw.VSI(o.id, &o.vsi)
	if err != nil {
		return err
	}
	far, err := vsi.AttachWith(v, uint32(o.id), vswitch.AttachConfig{Storm: o.storm})
	if err != nil {
		return err
	}
	var neigh *arp.Responder
	if o.tun {
		err = join(o, v, vsi, dev, far)
	} else {
		neigh, err = bridge(o, sw, v, vsi, dev, far)
	}
	if err != nil {
		return err
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
	go watch(sw.Events(), failed)
	go sw.Run(context.Background()) // not ctx: the last statistics are taken before it closes the ports
	fmt.Fprintln(out, ready(o, device.Name(), u.LocalAddr(), mtu))
	for {
		select {
		case <-asked:
			fmt.Fprintln(out, takeStats(sw, v, far, neigh))
			continue
		case <-every:
			fmt.Fprintln(out, takeStats(sw, v, far, neigh))
			continue
		case <-ctx.Done():
		case err = <-failed:
		}
		last := takeStats(sw, v, far, neigh)
		sw.Close()
		fmt.Fprintln(out, last)
		if e := capture.Stop(); e != nil && err == nil {
			err = fmt.Errorf("-pcap: %w", e)
		}
		return err
	}
}

// bridge makes a segment of a TAP and the tunnel. It returns what answers for neighbours, nil
// without.
func bridge(o options, sw *vswitch.Switch, v *vtep.VTEP, vsi *vswitch.VSI, dev vswitch.Port, far *vswitch.Attachment) (*arp.Responder, error) {
	if err := v.SetFlood(o.id, o.flood()...); err != nil {
		return nil, err
	}
	for _, e := range o.static {
		if err := addStatic(v, vsi, far, e); err != nil {
			return nil, err
		}
	}
	if err := vsi.Configure(o.vsi); err != nil {
		return nil, err
	}
	neigh, err := neighbours(o, sw, vsi)
	if err != nil {
		return nil, err
	}
	_, err = vsi.AttachWith(dev, 0, vswitch.AttachConfig{Storm: o.storm})
	return neigh, err
}

// addStatic puts an entry of -fdb into the table.
func addStatic(v *vtep.VTEP, vsi *vswitch.VSI, far *vswitch.Attachment, e static) error {
	peer, err := v.AddPeer(netip.AddrPortFrom(e.at, 0))
	if err != nil {
		return err
	}
	return vsi.FDB().Set(e.mac, far.Dest(peer), fdb.Static)
}

// watch reports the first port that fails. It ends with the switch.
func watch(events *vswitch.Events, failed chan<- error) {
	for {
		ev, err := events.Next(context.Background())
		if err != nil {
			return
		}
		if ev.Kind == frame.EventPortDown && ev.Err != nil {
			failed <- fmt.Errorf("the tunnel is down: %w: was the device deleted? start p2p again", ev.Err)
			return
		}
	}
}
