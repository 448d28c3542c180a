package kernel

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/vtep"
)

// A kernel's ipip behind its fou is the other end of a tunnel of IP in UDP: pings and TCP pass both ways, and the longest packet
// that fits, and the kernel finds no fault with any checksum.
func TestFOUGuest(t *testing.T) {
	n := netns.New(t)
	h, b := n.Router("ours"), n.Host("guest")
	h.Quiet()
	n.Link(h, "10.0.0.1/24", b, "")
	b.Quiet()
	g := qemu.Boot(t, b, qemu.Config{Link: "eth0", Addr: "10.0.0.2/24", Modules: []string{"fou"}, Setup: []string{
		"ip fou add port 8285 ipproto 4",
		"ip link add fou1 type ipip local 10.0.0.2 remote 10.0.0.1 ttl 64 encap fou encap-sport auto encap-dport 8285 encap-csum; ip link set fou1 mtu 1472 up",
		"ip addr add 10.65.2.6/32 dev lo; ip route add 10.65.1.0/24 dev fou1 src 10.65.2.6",
	}})
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	ours := running(t, nil)
	h.Do(func() {
		check.OK(t, ours.Apply(&node.Config{
			Tunnels: []node.Tunnel{{Config: vtep.Config{Name: "t", Type: encap.TypeFOU, Port: 8285}, Local: addr("10.0.0.1")}},
			Ports:   []node.Port{{Name: "vxhost0", Type: node.PortTUN, DeviceConfig: port.DeviceConfig{MTU: 1472}}},
			Segments: []node.Segment{
				{VNI: 1, Members: []node.Member{{Port: "vxhost0"}}, Gateway: &node.SegmentGateway{VRF: "v"}},
				{VNI: 100, Tunnel: "t", Gateway: &node.SegmentGateway{VRF: "v"}},
			},
			VRFs: []node.VRF{{Name: "v", Routes: []node.Route{
				{Prefix: prefix("10.65.1.5/32"), Via: []node.Hop{{Segment: 1}}},
				{Prefix: prefix("10.65.2.0/24"), Via: []node.Hop{{Segment: 100, Remote: addr("10.0.0.2")}}},
			}}},
		}))
	})
	h.Addr("vxhost0", "10.65.1.5/32")
	h.Route("10.65.2.0/24", "dev", "vxhost0", "src", "10.65.1.5")
	wire := b.Capture("eth0", "")
	wantTTL(t, h, "10.65.2.6", 63)
	h.Run("ping", "-n", "-c", "2", "-s", "1444", "-M", "do", "10.65.2.6")
	g.Run("ping -c 2 10.65.1.5")
	g.SendTCP(h, "10.65.1.5", 1<<20)

	const size = 1 << 20
	g.Run("nc -l -p 9001 </dev/null >/tmp/got & sleep 1")
	h.Do(func() {
		c, err := net.Dial("tcp", "10.65.2.6:9001")
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(netns.Timeout))
		_, err = c.Write(make([]byte, size))
		check.OK(t, err)
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
	})
	// nc has closed its end at once, and may still be writing.
	wait := fmt.Sprintf("for i in 1 2 3 4 5 6 7 8 9; do [ $(wc -c </tmp/got) -ge %d ] && break; sleep 1; done; wc -c </tmp/got", size)
	if got := strings.TrimSpace(g.Run(wait)); got != "1048576" {
		t.Errorf("TCP to the guest: %s bytes of %d", got, size)
	}
	for _, x := range []string{"InCsumErrors", "InErrs"} {
		check.Equal(t, x, g.Run("grep -A1 '^Udp:\\|^Tcp:' /proc/net/snmp | awk '/"+x+"/{for(i=2;i<=NF;i++)if($i==\""+x+"\")k=i;next} k{s+=$k;k=0} END{print s+0}'"), "0\n")
	}
	if got := h.ChecksumErrors(); len(got) > 0 {
		t.Errorf("checksum errors %v", got)
	}
	seen := wire.Stop()
	for filter, least := range map[string]int{"udp.dstport == 8285 && ip.src == 10.0.0.1": 100, "udp.dstport == 8285 && ip.src == 10.0.0.2": 100} {
		if got := len(netns.Fields(t, seen, filter, "frame.number")); got < least {
			t.Errorf("%s: %d packets, want %d", filter, got, least)
		}
	}
}
