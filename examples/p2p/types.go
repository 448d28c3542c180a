package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"syscall"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// What flags are about that some types of tunnels do not have.
var (
	ofUDP      = []string{"dstport", "srcport", "udpcsum", "udp6zerocsumrx"}
	ofVNI      = []string{"id"}
	ofEthernet = []string{"learning", "ageing", "maxaddress", "storm", "inner-vlan", "fdb", "neigh", "gateway", "gateway-mac", "group"}
)

// settle fills in what depends on the type, and refuses flags that mean nothing with it.
func (o *options) settle(fs *flag.FlagSet) error {
	t := o.vtep.Type
	ipip := t == encap.TypeIPIP
	if t == encap.TypeVXLAN && o.tun {
		return errors.New(`flag -tun: vxlan carries Ethernet frames, allowed is -tun with -type gpe and ipip`)
	}
	o.tun = o.tun || ipip
	var wrong error
	fs.Visit(func(f *flag.Flag) {
		switch {
		case wrong != nil:
		case ipip && slices.Contains(ofUDP, f.Name):
			wrong = fmt.Errorf("flag -%s: ipip has no UDP header, allowed with -type vxlan and gpe", f.Name)
		case ipip && slices.Contains(ofVNI, f.Name):
			wrong = fmt.Errorf("flag -%s: ipip has no VNI, allowed with -type vxlan and gpe", f.Name)
		case ipip && f.Name == "reserved":
			wrong = fmt.Errorf("flag -%s: ipip has no header of its own, allowed with -type vxlan and gpe", f.Name)
		case f.Name == "reserved":
			if _, err := o.vtep.Reserved.Mask(t, false); err != nil {
				wrong = fmt.Errorf("invalid value %q for flag -reserved: bits %#016x are in use by %v, allowed are the others", o.vtep.Reserved.String(), uint64(o.vtep.Reserved)&t.Used(false), t)
			}
		case o.tun && slices.Contains(ofEthernet, f.Name):
			wrong = fmt.Errorf("flag -%s: a TUN device has no Ethernet frames, allowed with -type vxlan, and gpe without -tun", f.Name)
		case ipip && f.Name == "peers" && o.vtep.Peers != vtep.ListedOnly:
			wrong = errors.New(`invalid value "any" for flag -peers: ipip takes packets of -remote only, allowed is listed`)
		}
	})
	switch {
	case wrong != nil:
		return wrong
	case o.tun && len(o.remotes) != 1:
		return fmt.Errorf("flag -remote: a tunnel on a TUN device has one other end, required is one address, given are %d", len(o.remotes))
	}
	switch {
	case ipip:
		o.id, o.dstport = 0, 0
	case o.dstport != 0:
	case t == encap.TypeGPE:
		o.dstport = encap.GPEPort
	default:
		o.dstport = encap.VXLANPort
	}
	return nil
}

// listen opens the underlay.
func listen(o options) (vtep.Underlay, error) {
	queues := o.queueCount()
	if o.vtep.Type == encap.TypeIPIP {
		c := &o.underlay
		return underlay.ListenIP(o.local, &underlay.IPConfig{Mark: c.Mark, Device: c.Device, Queues: queues, BusyPoll: o.busy})
	}
	o.underlay.Queues, o.underlay.BusyPoll = queues, o.busy
	return underlay.ListenUDP(netip.AddrPortFrom(o.local, o.dstport), &o.underlay)
}

// open opens the device. A persistent one was made for one queue or for several: where -queues
// does not say, it is opened as it was made.
func open(o options, mtu int) (*port.Device, error) {
	openAs := port.OpenTAP
	if o.tun {
		openAs = port.OpenTUN
	}
	cfg := &port.DeviceConfig{MTU: mtu, Queues: o.queueCount(), BusyPoll: o.busy, NoOffload: o.plain}
	dev, err := openAs(o.dev, cfg)
	if !errors.Is(err, syscall.EINVAL) || o.queues != 0 {
		return dev, err
	}
	if cfg.Queues > 1 {
		cfg.Queues = 1
	} else {
		cfg.Queues = 2
	}
	return openAs(o.dev, cfg)
}

// queueCount is what -queues says, or one for each processor, up to four: flows are shared among
// them, and more are of little use to one tunnel. With IP in IP every queue costs the others
// something.
func (o *options) queueCount() int {
	switch {
	case o.queues != 0:
		return o.queues
	case o.vtep.Type == encap.TypeIPIP:
		return 1
	}
	return min(runtime.GOMAXPROCS(0), 4)
}

// ready is the line that says that the tunnel carries traffic.
func ready(o options, dev string, local netip.AddrPort, mtu int) string {
	if o.vtep.Type == encap.TypeIPIP {
		return fmt.Sprintf("ready dev=%s type=%v local=%v mtu=%d", dev, o.vtep.Type, local.Addr(), mtu)
	}
	return fmt.Sprintf("ready dev=%s type=%v id=%d local=%v mtu=%d", dev, o.vtep.Type, o.id, local, mtu)
}

// join joins a TUN and the far end of the tunnel, without a segment between them.
func join(o options, v *vtep.VTEP, vsi *vswitch.VSI, dev vswitch.Port, far *vswitch.Attachment) error {
	peer, err := v.AddPeer(netip.AddrPortFrom(o.remotes[0], 0))
	if err != nil {
		return err
	}
	near, err := vsi.Attach(dev, 0)
	if err != nil {
		return err
	}
	w, err := l3.NewWire(l3.WireConfig{Near: near.Dest(0), Far: far.Dest(peer), Tunnel: v, Send: vsi.Send})
	if err != nil {
		return err
	}
	o.vsi.Slots = vswitch.Slots{Gateway: w, TooBig: w.TooBig()}
	return vsi.Configure(o.vsi)
}
