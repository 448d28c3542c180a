package evpn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

// A pair is two sites on a switch, each with hosts.
type pair struct {
	sites           [2]*site
	bridged, routed [2]*netns.Host
}

// newPair makes sites 1 and 2 in a subnet such as "192.0.2.%d/24".
func newPair(t *testing.T, n *netns.Net, sw *netns.Host, subnet string, conf func(i int) Config) (p pair) {
	t.Helper()
	for i := range p.sites {
		us := n.Host(fmt.Sprintf("us%d", i+1))
		n.Plug(us, fmt.Sprintf(subnet, i+1), sw)
		us.Ready()
		p.sites[i] = newSite(t, us, prefixes(fmt.Sprintf(subnet, i+1))[0].Addr().String(), conf(i))
		p.bridged[i], p.routed[i] = p.sites[i].hosts(n)
	}
	tell(t, p.sites[:]...)
	return p
}

// clientOf is the configuration of a client of the reflector 192.0.2.9.
func clientOf(int) Config { return Config{Peers: []Peer{peering("192.0.2.9", 65000)}} }

// reflectorConfig makes bgpd that reflector, with FRR; lines follow those of the neighbours.
func reflectorConfig(lines ...string) frr.Daemon {
	return frr.Daemon{Name: "bgpd", Config: fmt.Sprintf(`router bgp 65000
 bgp router-id 192.0.2.9
 no bgp default ipv4-unicast
 neighbor 192.0.2.1 remote-as 65000
 neighbor 192.0.2.2 remote-as 65000
%s
 address-family l2vpn evpn
  neighbor 192.0.2.1 activate
  neighbor 192.0.2.1 route-reflector-client
  neighbor 192.0.2.2 activate
  neighbor 192.0.2.2 route-reflector-client
`, strings.Join(lines, "\n"))}
}

// reach waits until hosts of both sites reach each other.
func (p *pair) reach() {
	p.bridged[0].Until("bridged", func() bool { return pings(p.bridged[0], "172.16.0.12") })
	p.routed[0].Until("routed", func() bool { return pings(p.routed[0], "172.18.2.2") })
}

// mobile gives each site a host without an address in segment 100, on device "mobile".
func (p *pair) mobile(n *netns.Net) (hosts [2]*netns.Host) {
	for i, s := range p.sites {
		hosts[i] = n.Host(fmt.Sprintf("mobile%d", i+1))
		tap := netns.Open(s.t, hosts[i], func() (*port.Device, error) { return port.OpenTAP("mobile", nil) })
		check.OK(s.t, check.Must(s.node.Segment(100, nil))(s.t).Add(tap, nil))
		hosts[i].Up("mobile")
	}
	return hosts
}

// move has a host speak at a site, and waits until both know.
func (p *pair) move(h *host, mobile [2]*netns.Host, at int) {
	mobile[at].Inject("mobile", fake.GratuitousARP(h.mac, h.ip))
	mobile[at].Until("the host where it is", func() bool {
		return p.sites[at].at(h.mac) == "here" && p.sites[1-at].at(h.mac) == p.sites[at].addr.String()+":4789"
	})
}
