//go:build linux

package qemu_test

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
)

// A guest ends an IP-in-IP tunnel.
func Example() {
	_ = func(t *testing.T) {
		a := netns.New(t).Host("a")
		g := qemu.Boot(t, a, qemu.Config{Link: "tap0", Addr: "10.0.0.2/24", Setup: []string{
			"ip link add ipip0 type ipip local 10.0.0.2 remote 10.0.0.1",
			"ip addr add 192.168.7.2/24 dev ipip0",
			"ip link set ipip0 up",
		}})
		a.Addr("tap0", "10.0.0.1/24")
		c := a.Capture("tap0", "ip proto 4")
		g.Try("ping -c 1 -W 1 192.168.7.1")
		for _, row := range netns.Fields(t, c.Want(1, nil), "", "ip.src", "ip.proto") {
			t.Log(row) // [10.0.0.2,192.168.7.2 4,1]
		}
	}
}
