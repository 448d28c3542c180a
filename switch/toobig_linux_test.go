package vswitch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A narrow port is a TAP behind a path that takes less than its device does, as a
// tunnel is.
type narrow struct {
	*port.Device
	mtu int
}

func (n *narrow) MTU(uint16) int { return n.mtu }

// kernels returns two hosts, 10.9.0.1 and 10.9.0.2, whose TAPs have an MTU of 1500 and
// are joined by a switch that takes frames of mtu bytes towards the second.
func kernels(t *testing.T, mtu int) (a, b *netns.Host, sw *vswitch.Switch) {
	n := netns.New(t)
	sw = check.Must(vswitch.New(nil))(t)
	vsi := check.Must(sw.VSI(1, &vswitch.VSIConfig{Slots: vswitch.Slots{TooBig: sw.TooBig()}}))(t)
	open := func(h *netns.Host, addr string) (tap *port.Device) {
		h.Do(func() { tap = check.Must(port.OpenTAP("tap0", nil))(t) })
		h.Addr("tap0", addr)
		return tap
	}
	a, b = n.Host("a"), n.Host("b")
	check.Must(vsi.Attach(open(a, "10.9.0.1/24,fd09::1/64"), 0))(t)
	check.Must(vsi.Attach(&narrow{open(b, "10.9.0.2/24,fd09::2/64"), mtu}, 0))(t)
	done := make(chan struct{})
	go func() { sw.Run(context.Background()); close(done) }()
	t.Cleanup(func() { sw.Close(); <-done })
	return a, b, sw
}

// The Linux kernel as sender believes the answers: ping says the MTU, the route cache
// has it, and TCP, whose segments are of 1500 bytes at first, gets through.
func TestLinuxBelieves(t *testing.T) {
	for _, c := range []struct {
		to   string
		head int // of IP and ICMP echo
		mtu  int
		says string
	}{
		{"10.9.0.2", 28, 1450, "Frag needed and DF set (mtu = %d)"},
		{"10.9.0.2", 28, 600, "Frag needed and DF set (mtu = %d)"},
		{"fd09::2", 48, 1430, "Packet too big: mtu=%d"},
		{"fd09::2", 48, 1280, "Packet too big: mtu=%d"},
	} {
		t.Run(fmt.Sprintf("%s/%d", c.to, c.mtu), func(t *testing.T) {
			a, b, sw := kernels(t, c.mtu+14)
			a.Ping(c.to, 1)
			ping := func(n int) string {
				out, _ := a.Try(t.Context(), "ping", "-n", "-M", "do", "-c", "1", "-W", "2", "-s", fmt.Sprint(n), c.to)
				return out
			}
			route := func() string { return a.IP("route", "get", c.to) }

			if out := ping(c.mtu - c.head); !strings.Contains(out, " 1 received") {
				t.Errorf("what just fits:\n%s", out)
			}
			if out := route(); strings.Contains(out, "mtu") {
				t.Fatalf("route before: %s", out)
			}
			if out := ping(c.mtu - c.head + 1); !strings.Contains(out, fmt.Sprintf("From "+c.to+" icmp_seq=1 "+c.says, c.mtu)) {
				t.Errorf("one byte more:\n%s", out)
			}
			if out := route(); !strings.Contains(out, fmt.Sprintf(" mtu %d", c.mtu)) {
				t.Errorf("route after: %s", out)
			}

			// TCP finds out by itself.
			a.IP("route", "flush", "cache")
			a.IP("-6", "route", "flush", "cache")
			if out := route(); strings.Contains(out, "mtu") {
				t.Fatalf("route after a flush: %s", out)
			}
			was := sw.Stats().TooBig
			server := b.Start("iperf3", "-s", "-1", "--forceflush")
			server.Want("Server listening")
			a.Run("iperf3", "-c", c.to, "-n", "1M")
			check.OK(t, server.Wait())
			now := sw.Stats().TooBig
			if now.Sent4+now.Sent6 == was.Sent4+was.Sent6 || now.Malformed != 0 {
				t.Errorf("before TCP %+v, after %+v", was, now)
			}
			if out := route(); !strings.Contains(out, fmt.Sprintf(" mtu %d", c.mtu)) {
				t.Errorf("route after TCP: %s", out)
			}
		})
	}
}
