package main

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	rawip "github.com/vxswitch/vxswitch/underlay" // the name is that of a type here
	"github.com/vxswitch/vxswitch/vtep"
)

// lone is p2p -type ipip -offload=false without batches: the worker is given one packet at
// a time, so it sends and writes one with a system call, and joins nothing. Only what waits
// in the receiving socket is still fetched with one call. It runs until it is killed.
func lone(local, remote, mtu string) error {
	from, err := netip.ParseAddr(local)
	if err != nil {
		return err
	}
	to, err := netip.ParseAddr(remote)
	if err != nil {
		return err
	}
	room, err := strconv.Atoi(mtu)
	if err != nil {
		return err
	}
	u, err := rawip.ListenIP(from, nil)
	if err != nil {
		return err
	}
	defer u.Close()
	v, err := vtep.New(&vtep.Config{Type: encap.TypeIPIP}, loneUnderlay{u})
	if err != nil {
		return err
	}
	dev, err := port.OpenTUN("vx0", &port.DeviceConfig{MTU: room, NoOffload: true})
	if err != nil {
		return err
	}
	defer dev.Close()
	sw, err := vswitch.New(nil)
	if err != nil {
		return err
	}
	defer sw.Close()
	vsi, err := sw.VSI(0, nil)
	if err != nil {
		return err
	}
	far, err := vsi.Attach(v, 0)
	if err != nil {
		return err
	}
	peer, err := v.AddPeer(netip.AddrPortFrom(to, 0))
	if err != nil {
		return err
	}
	near, err := vsi.Attach(lonePort{dev}, 0)
	if err != nil {
		return err
	}
	w, err := l3.NewWire(l3.WireConfig{Near: near.Dest(0), Far: far.Dest(peer), Tunnel: v, Send: vsi.Send})
	if err != nil {
		return err
	}
	if err := vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: w, TooBig: w.TooBig()}}); err != nil {
		return err
	}
	fmt.Println("ready")
	return sw.Run(context.Background())
}

type (
	loneUnderlay struct{ *rawip.IP }
	lonePort     struct{ *port.Device }
)

func (u loneUnderlay) Readers() []frame.Reader { return oneByOne(u.IP.Readers()) }
func (p lonePort) Readers() []frame.Reader     { return oneByOne(p.Device.Readers()) }

func oneByOne(rs []frame.Reader) (ones []frame.Reader) {
	for _, r := range rs {
		ones = append(ones, &loneReader{from: r})
	}
	return ones
}

// A loneReader hands out the frames of another one by one.
type loneReader struct {
	from frame.Reader
	have frame.Batch
	next int // of have
}

func (r *loneReader) Read(b *frame.Batch) error {
	b.Reset()
	if r.next == len(r.have.Frames) {
		r.next = 0
		if err := r.from.Read(&r.have); err != nil {
			b.Release()
			return err
		}
	}
	*b.Borrow(nil, 0, 0) = r.have.Frames[r.next]
	b.Outer[0] = r.have.Outer[r.next]
	r.next++
	return nil
}
