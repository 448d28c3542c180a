package node

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// Outer packets that come in fragments: over UDP sockets the host puts them together and the tunnel takes them, as the kernel's own
// does, unless a packet filter drops fragments first. Over packet sockets they are dropped by name.
func TestFragments(t *testing.T) {
	netns.Tool(t, "nft")
	for underlay, accepted := range map[string]bool{"udp": true, "packet": false} {
		t.Run(underlay, func(t *testing.T) {
			l := newLab(t)
			far := l.plug("far", "192.0.2.2").h
			kind := ""
			if underlay == "packet" {
				kind = `, "underlay": "packet", "bind": "eth0"`
			}
			s := l.start("node", "192.0.2.1", parse(t, `{"tunnels": [{"name": "vx", "local": "192.0.2.1"`+kind+`}], "ports": [{"name": "tap10"}],
			  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2"], "members": [{"port": "tap10"}]}]}`))
			near := s.guest("tap10", "10.0.10.1/24", "")
			far.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.1"}) // of no device: its MTU stays 1450
			far.Up("vx0")
			far.Addr("vx0", "10.0.10.2/24")
			far.IP("link", "set", "eth0", "mtu", "800")
			server := udpSocket(t, near, netip.MustParseAddrPort("10.0.10.1:9"))
			src, dst := net.HardwareAddr{2, 0, 0, 0, 0, 2}, check.Must(net.ParseMAC(near.MAC("tap10")))(t)
			hears := func(size int, want bool) bool {
				t.Helper()
				b := make([]byte, 2000)
				for end := time.Now().Add(patience(want)); time.Now().Before(end); {
					ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IPv4(10, 0, 10, 2), DstIP: net.IPv4(10, 0, 10, 1)}
					udp := &layers.UDP{SrcPort: 9, DstPort: 9}
					udp.SetNetworkLayerForChecksum(ip)
					far.Inject("vx0", packets.Of(&layers.Ethernet{SrcMAC: src, DstMAC: dst, EthernetType: layers.EthernetTypeIPv4}, ip, udp, gopacket.Payload(make([]byte, size))))
					server.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
					for {
						n, err := server.Read(b)
						if err != nil {
							break
						}
						if n == size {
							return true
						}
					}
				}
				return false
			}
			for _, c := range []struct {
				size int
				want bool
			}{{600, true}, {1300, accepted}} {
				if got := hears(c.size, c.want); got != c.want {
					t.Errorf("%d bytes: %v, want %v", c.size, got, c.want)
				}
			}
			if !accepted {
				if s.stats("vx").RxDrops[frame.Fragment] == 0 {
					t.Errorf("no drop has the name fragment: %+v", s.stats("vx"))
				}
				return
			}
			s.h.Run("nft", "add table ip t; add chain ip t c { type filter hook prerouting priority -450; }; add rule ip t c ip frag-off & 0x3fff != 0 drop")
			if hears(1300, false) {
				t.Error("fragments pass the filter")
			}
			if !hears(600, true) {
				t.Error("whole packets do not pass the filter")
			}
		})
	}
}
