//go:build linux

package netns_test

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Two hosts, each with a VTEP of the kernel, ping each other through the tunnel.
func Example() {
	_ = func(t *testing.T) {
		n := netns.New(t)
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
		a.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.1", Remote: "10.0.0.2", Addr: "192.168.7.1/24"})
		b.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.7.2/24"})
		a.Ping("192.168.7.2", 3)
	}
}

// What the kernel's VTEP sends, decoded by tshark.
func ExampleHost_Capture() {
	_ = func(t *testing.T) {
		n := netns.New(t)
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
		a.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.1", Remote: "10.0.0.2"})
		c := b.Capture("eth0", "udp port 4789")
		a.Inject("vx0", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5, 'h', 'i'})
		for _, row := range netns.Fields(t, c.Want(1, nil), "vxlan", "ip.src", "vxlan.vni") {
			t.Log(row) // [10.0.0.1 100]
		}
	}
}
