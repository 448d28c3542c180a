package evpn

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A stream is datagrams of a host to 172.16.0.50, one a millisecond, of 1,000 flows in turn, and when they came at the links of that one.
type stream struct {
	flows []*net.UDPConn

	mu   sync.Mutex
	sent []time.Time
	came map[uint32][]int // by number: the links
}

func newStream(t *testing.T, from *netns.Host, links [2]*netns.Host) *stream {
	s := &stream{came: map[uint32][]int{}}
	for range 1000 {
		s.flows = append(s.flows, netns.Open(t, from, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", nil) }))
	}
	for i, h := range links {
		c := netns.Open(t, h, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", &net.UDPAddr{Port: 9}) })
		go func() {
			b := make([]byte, 100)
			for {
				n, err := c.Read(b)
				if err != nil {
					return
				}
				if n == 4 {
					s.mu.Lock()
					k := binary.BigEndian.Uint32(b)
					s.came[k] = append(s.came[k], i)
					s.mu.Unlock()
				}
			}
		}()
	}
	return s
}

// send sends n datagrams to an address.
func (s *stream) send(to string, n int) {
	at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(to), 9))
	for tick := time.NewTicker(time.Millisecond); n > 0; n-- {
		<-tick.C
		s.mu.Lock()
		k := len(s.sent)
		s.sent = append(s.sent, time.Now())
		s.mu.Unlock()
		s.flows[k%len(s.flows)].WriteToUDP(binary.BigEndian.AppendUint32(nil, uint32(k)), at)
	}
}

// took returns how many of the datagrams from number first on came at each link, how many more than once, how many were lost, and in how long.
func (s *stream) took(first int) (at [2]int, twice, lost int, gap time.Duration) {
	time.Sleep(200 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	var begin, end time.Time
	for k, sent := range s.sent[first:] {
		came := s.came[uint32(first+k)]
		for _, i := range came {
			at[i]++
		}
		switch len(came) {
		case 0:
			if lost++; begin.IsZero() {
				begin = sent
			}
			end = sent
		case 1:
		default:
			twice++
		}
	}
	return at, twice, lost, end.Sub(begin)
}

func (s *stream) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

// Flows to a host with two links use both; when a node or a link fails they go on over the other within three detect intervals, and
// a broadcast comes once.
func TestHomedLoss(t *testing.T) {
	t.Parallel()
	const detect = 3 * 300 * time.Millisecond // of BFD
	n := netns.New(t)
	sw := n.Switch("sw")
	conf := func(i int) (c Config) {
		for k := range 3 {
			if k == i {
				continue
			}
			p := peering(fmt.Sprintf("192.0.2.%d", k+1), 65000)
			p.Local, p.BFD, p.Hold = netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i+1)), &BFD{}, time.Minute
			c.Peers = append(c.Peers, p)
		}
		if i < 2 {
			c.EthernetSegments = []EthernetSegment{{ESI: bondESI, Port: "tap1", Wait: time.Second}}
		}
		return c
	}
	var sites [3]*site
	for i := range sites {
		h := n.Host(fmt.Sprintf("us%d", i+1))
		addr := fmt.Sprintf("192.0.2.%d", i+1)
		n.Plug(h, addr+"/24", sw)
		h.Ready()
		sites[i] = newSite(t, h, addr, conf(i))
	}
	far := n.Host("far")
	sites[2].plug(far, 100, "172.16.0.11/24", frame.MAC{2, 0, 0, 0, 0x77, 2})
	mac := frame.MAC{2, 0, 0, 0, 0x77, 1}
	var links [2]*netns.Host
	for i := range links {
		links[i] = n.Host(fmt.Sprintf("link%d", i+1))
		sites[i].plug(links[i], 100, "172.16.0.50/24", mac)
		links[i].Ready()
	}
	whole := func() {
		t.Helper()
		far.Until("all sessions, and one of two to forward", func() bool {
			for _, s := range sites {
				for _, p := range s.speaker.Status().Peers {
					if p.State != "established" || p.BFD != "alive" {
						return false
					}
				}
			}
			x, y := sites[0].node.Role("tap1", 100), sites[1].node.Role("tap1", 100)
			return x.NoFlood != y.NoFlood && len(x.Shared) == 1 && len(y.Shared) == 1
		})
	}
	whole()
	far.Until("the host to be reached", func() bool { return pings(far, "172.16.0.50") })

	s := newStream(t, far, links)
	both := func() {
		t.Helper()
		whole()
		far.Until("both links to carry", func() bool {
			first := s.number()
			s.send("172.16.0.50", 1000)
			at, _, lost, _ := s.took(first)
			return lost == 0 && min(at[0], at[1]) > 300
		})
	}
	both()
	first := s.number()
	s.send("172.16.0.50", 1000)
	at, twice, lost, _ := s.took(first)
	t.Logf("1,000 flows: %d and %d", at[0], at[1])
	if twice > 0 || lost > 0 {
		t.Errorf("%d came twice, %d not", twice, lost)
	}
	first = s.number()
	s.send("172.16.0.255", 200)
	if at, twice, lost, _ := s.took(first); twice > 0 || lost > 0 {
		t.Errorf("broadcasts: %v, %d came twice, %d not", at, twice, lost)
	}

	fails := func(what string, fail func()) {
		t.Helper()
		first := s.number()
		time.AfterFunc(500*time.Millisecond, fail)
		s.send("172.16.0.50", 5000)
		at, twice, lost, gap := s.took(first)
		t.Logf("%s fails: %d of %d lost, in %v", what, lost, len(s.sent)-first, gap)
		if gap > 3*detect || twice > 0 || at[1] < 3000 {
			t.Errorf("%s: %v, %d came twice, lost in %v, want at most %v", what, at, twice, gap, 3*detect)
		}
	}
	fails("a node", func() {
		sites[0].host.Run("nft", "table inet t { chain c { type filter hook input priority 0; iifname eth0 drop; }; chain d { type filter hook output priority 0; oifname eth0 drop; }; }")
	})
	sites[0].host.Run("nft", "delete table inet t")
	both()
	fails("a link", func() { links[0].IP("link", "set", "tap1", "down") })
	links[0].IP("link", "set", "tap1", "up")
	both()
}
