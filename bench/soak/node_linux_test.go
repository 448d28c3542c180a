package soak

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

const vni = 100

// An end is an end point: a TAP and a VTEP on a switch of their own.
type end struct {
	sw *vswitch.Switch
}

// newEnd makes an end point in a host and gives its TAP an address; it ends with the
// test.
func newEnd(t *testing.T, h *netns.Host, local, remote, inner string) *end {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var u *underlay.UDP
	var err error
	h.Do(func() {
		u, err = underlay.ListenUDP(netip.AddrPortFrom(netip.MustParseAddr(local), encap.VXLANPort), nil)
	})
	check(err)
	v, err := vtep.New(nil, u)
	check(err)
	e := &end{}
	e.sw, err = vswitch.New(nil)
	check(err)
	done := make(chan error, 1)
	go func() { done <- e.sw.Run(context.Background()) }()
	t.Cleanup(func() {
		e.sw.Close()
		v.Close()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	vsi, err := e.sw.VSI(vni, nil)
	check(err)
	_, err = vsi.Attach(v, vni)
	check(err)
	check(v.SetFlood(vni, netip.AddrPortFrom(netip.MustParseAddr(remote), 0)))
	tap, err := port.OpenTAP("tap0", &port.DeviceConfig{MTU: v.MTU(0) - encap.EthernetLen, Namespace: h.NS})
	check(err)
	if _, err := vsi.Attach(tap, 0); err != nil {
		tap.Close()
		t.Fatal(err)
	}
	h.Addr("tap0", inner)
	return e
}

// frames is how many frames the switch has read; a superframe is one.
func (e *end) frames() (n uint64) {
	for _, p := range e.sw.Stats().Ports {
		n += p.Rx.Frames
	}
	return n
}
