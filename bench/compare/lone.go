package main

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
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
	n, err := node.New(&node.Options{Listen: func(t *node.Tunnel) (vtep.Underlay, error) {
		u, err := rawip.ListenIP(t.Local, nil)
		return loneUnderlay{u}, err
	}})
	if err != nil {
		return err
	}
	defer n.Close()
	if _, err := n.Tunnel("ipip", node.Tunnel{Config: vtep.Config{Type: encap.TypeIPIP}, Local: from}); err != nil {
		return err
	}
	seg, err := n.Segment(0, &node.Segment{Tunnel: "ipip", CrossConnect: to})
	if err != nil {
		return err
	}
	dev, err := port.OpenTUN("vx0", &port.DeviceConfig{MTU: room, NoOffload: true})
	if err != nil {
		return err
	}
	defer dev.Close()
	if err := seg.Add(lonePort{dev}, nil); err != nil {
		return err
	}
	fmt.Println("ready")
	return n.Run(context.Background())
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
