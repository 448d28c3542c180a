package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// minMTU is what every IPv4 link carries (RFC 791).
const minMTU = 68

// tunnel runs the tunnel until ctx is done or a port fails:
//
//	kernel -- TAP --- VSI --- VTEP -- UDP -- peers
func tunnel(ctx context.Context, o options, out io.Writer) error {
	o.underlay.Queues, o.underlay.BusyPoll = o.queues, o.busy
	u, err := underlay.ListenUDP(netip.AddrPortFrom(o.local, o.dstport), &o.underlay)
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
	if err := v.SetFlood(o.id, o.flood()...); err != nil {
		return err
	}
	mtu := o.mtu
	if mtu == 0 {
		mtu = v.MTU(0) - encap.EthernetLen // of the device: without the inner Ethernet header
	}
	if mtu < minMTU {
		return fmt.Errorf("the MTU towards %v, %d, leaves an MTU of %d inside the tunnel: raise it by %d or more", o.local, u.MTU(), mtu, minMTU-mtu)
	}
	tap, err := port.OpenTAP(o.dev, &port.DeviceConfig{MTU: mtu, Queues: o.queues, BusyPoll: o.busy, NoOffload: o.plain})
	if err != nil {
		return deviceError(o, mtu, err)
	}
	defer tap.Close()
	dev, err := capture.Port(tap)
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
	tooBig, err := l3.NewTooBig(nil)
	if err != nil {
		return err
	}
	o.vsi.Slots.TooBig = tooBig
	vsi, err := sw.VSI(o.id, &o.vsi)
	if err != nil {
		return err
	}
	neigh, err := neighbours(o, sw, vsi)
	if err != nil {
		return err
	}
	far, err := vsi.Attach(v, uint32(o.id))
	if err != nil {
		return err
	}
	for _, e := range o.static {
		if err := addStatic(v, vsi, far, e); err != nil {
			return err
		}
	}
	if _, err := vsi.Attach(dev, 0); err != nil {
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
	fmt.Fprintf(out, "ready dev=%s type=vxlan id=%d local=%v mtu=%d\n", tap.Name(), o.id, u.LocalAddr(), mtu)
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
