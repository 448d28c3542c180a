package discovery

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/discovery/internal/hello"
	"github.com/vxswitch/vxswitch/discovery/internal/seal"
	"github.com/vxswitch/vxswitch/discovery/internal/wire"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A site is a node in a host of the lab. Its kernel has device "host" with 10.7.0.N in segment 100.
type site struct {
	host    *netns.Host
	addr    netip.Addr
	port    string // of the lab's switch
	node    *node.Node
	speaker *Speaker
}

func newSite(t *testing.T, n *netns.Net, sw *netns.Host, i int, keys string) *site {
	t.Helper()
	s := &site{host: n.Host(fmt.Sprint("vtep", i)), addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}
	_, s.port = n.Plug(s.host, s.addr.String()+"/24", sw)
	s.host.Ready()
	s.node = check.Must(node.New(&node.Options{Owners: []string{DefaultOwner}}))(t)
	s.host.Do(func() {
		check.Must(s.node.Tunnel("vx", node.Tunnel{Local: s.addr, Config: vtep.Config{Peers: vtep.ListedPerVNI}}))(t)
	})
	v := check.Must(s.node.Segment(100, &node.Segment{Tunnels: []node.SegmentTunnel{{Tunnel: "vx", AttachConfig: vswitch.AttachConfig{NoLearn: true}}}}))(t)
	check.OK(t, v.Add(netns.Open(t, s.host, func() (*port.Device, error) { return port.OpenTAP("host", nil) }), nil))
	s.host.Addr("host", fmt.Sprintf("10.7.0.%d/24", i))
	s.host.Up("host")
	s.speaker = check.Must(New(s.node, &Config{Tunnel: "vx", Local: s.addr, KeyFile: keys, In: s.host.Do, Name: fmt.Sprint("vtep", i),
		Servers: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}}))(t)
	t.Cleanup(func() { s.node.Close() })
	check.Run(t, s.node.Run, s.speaker.Run)
	return s
}

// up returns how many neighbours are up.
func (s *site) up() (n int) {
	for _, x := range s.speaker.Status().Neighbours {
		if x.Up {
			n++
		}
	}
	return n
}

func (s *site) pings(to int) bool {
	_, err := s.host.Try(context.Background(), "ping", "-n", "-c", "1", "-W", "1", fmt.Sprintf("10.7.0.%d", to))
	return err == nil
}

// Three nodes find each other, and their kernels reach each other through segment 100, again after a link was down. Who has no key
// changes nothing.
func TestLive(t *testing.T) {
	n := netns.New(t)
	keys := filepath.Join(t.TempDir(), "keys")
	check.OK(t, os.WriteFile(keys, []byte("1 a key of the lab's own\n"), 0o600))
	sw := n.Switch("sw")
	var sites []*site
	for i := range 3 {
		sites = append(sites, newSite(t, n, sw, i+1, keys))
	}
	all := func(what string) {
		t.Helper()
		for i, s := range sites {
			s.host.Until(what+": neighbours", func() bool { return s.up() == 2 })
			for j := range sites {
				if i != j {
					s.host.Until(fmt.Sprintf("%s: ping %d from %d", what, j+1, i+1), func() bool { return s.pings(j + 1) })
				}
			}
		}
	}
	all("begun")
	remote := 0
	for h := range sites[0].speaker.Hosts() {
		if h.Kind == Advertised {
			remote++
		}
	}
	if remote != 2 {
		t.Errorf("%d hosts of others, want 2", remote)
	}

	last := sites[2]
	sw.Run("ip", "link", "set", last.port, "down")
	for _, s := range sites[:2] {
		s.host.Until("the link is down", func() bool { return s.up() == 1 })
	}
	if last.pings(1) || !sites[0].pings(2) {
		t.Error("the wrong hosts reach each other")
	}
	sw.Run("ip", "link", "set", last.port, "up")
	all("joined")

	hostile(t, n, sw, sites)
	all("under attack")
}

// hostile has a sender without key say hello, and send noise.
func hostile(t *testing.T, n *netns.Net, sw *netns.Host, sites []*site) {
	h := n.Host("hostile")
	n.Plug(h, "192.0.2.66/24", sw)
	h.Ready()
	from, to := netip.MustParseAddr("192.0.2.66"), sites[0].addr
	before := sites[0].speaker.Status()
	conn := netns.Open(t, h, func() (net.Conn, error) {
		return net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, DefaultPort)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, DefaultPort)))
	})
	var s seal.Sealer
	for range 100 {
		for _, b := range [][]byte{{1}, s.Seal(seal.Keys{1: []byte("not the lab's key")}, 1, from, to, time.Now(), wire.Append(nil, 0, hello.Hello{Life: 1}))} {
			check.Must(conn.Write(b))(t)
		}
		time.Sleep(time.Millisecond)
	}
	h.Until("all refused", func() bool {
		st := sites[0].speaker.Status()
		return st.Refused[BadKey]-before.Refused[BadKey] == 100 && st.Refused[Malformed]-before.Refused[Malformed] == 100
	})
	if st := sites[0].speaker.Status(); len(st.Neighbours) != 2 || st.Clients != 3 {
		t.Errorf("%d neighbours and %d clients, want 2 and 3", len(st.Neighbours), st.Clients)
	}
}
