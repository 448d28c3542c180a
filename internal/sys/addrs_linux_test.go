package sys

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The addresses are those that package net has, on a point-to-point link that of this end.
func TestHostAddrs(t *testing.T) {
	h := netns.New(t).Host("h")
	h.IP("link", "add", "x1", "type", "veth", "peer", "name", "x2")
	h.IP("addr", "add", "192.0.2.1", "peer", "192.0.2.2/32", "dev", "x1")
	h.IP("addr", "add", "192.0.2.3/24", "dev", "x2")
	h.IP("addr", "add", "fd00::1/64", "dev", "x2")
	h.Do(func() {
		var got, want []string
		for i, a := range HostAddrs() {
			got = append(got, fmt.Sprint(i, " ", a))
		}
		for _, i := range check.Must(net.Interfaces())(t) {
			for _, a := range check.Must(i.Addrs())(t) {
				want = append(want, fmt.Sprint(i.Index, " ", check.Must(netip.ParsePrefix(a.String()))(t).Addr()))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		check.Slice(t, "addresses", got, want)
		if len(got) < 3 {
			t.Errorf("%q", got)
		}
	})
}
