package node

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// large is a configuration of 10,000 static MACs and 1,000 routes, of node 1 or 2. Two with
// another number differ everywhere but in VNI 10 and 50, their gateways and the tunnel: in half
// of the MACs and routes, in a segment that comes and goes with its port, in the gateway of VNI
// 20, neighbours and policies.
func large(this, number int) *Config {
	other := 3 - this
	peer := netip.AddrFrom4([4]byte{192, 0, 2, byte(other)})
	macs := func(vni, n, from int) (list []FDB) {
		for i := range n {
			list = append(list, FDB{MAC: frame.MAC{2, byte(vni), byte(from), 1, byte(i >> 8), byte(i)}, Remote: peer})
		}
		return list
	}
	odd, mtu := number%2, port.DeviceConfig{MTU: 1450}
	anycast := func(address string) *SegmentGateway {
		return &SegmentGateway{VRF: "red", Gateway: Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix(address)}, MAC: frame.MAC{2, 0, 0, 0xff, 0, 0}, VTEPMAC: frame.MAC{2, 0, 0, 0xee, 0, byte(this)}, Anycast: true}}
	}
	c := &Config{
		Tunnels: []Tunnel{{Config: vtep.Config{Name: "vx0"}, Local: netip.AddrFrom4([4]byte{192, 0, 2, byte(this)})}},
		Ports:   []Port{{Name: "vm10", DeviceConfig: mtu}, {Name: "vm20", DeviceConfig: mtu}, {Name: "vm50", DeviceConfig: mtu}},
		Segments: []Segment{
			{VNI: 10, Tunnel: "vx0", Flood: []netip.Addr{peer}, Members: []Member{{Port: "vm10"}}, FDB: macs(10, 5000, 0), Gateway: anycast("10.0.10.254/24")},
			{VNI: 50, Tunnel: "vx0", Flood: []netip.Addr{peer}, Members: []Member{{Port: "vm50"}}, Gateway: anycast("10.0.50.254/24")},
			{VNI: 20, Tunnel: "vx0", Flood: []netip.Addr{peer}, Members: []Member{{Port: "vm20", Isolated: odd == 1}},
				FDB:        append(macs(20, 2500, 0), macs(20, 2500, 1+odd)...),
				Neighbours: &Neighbours{Config: arp.Config{Mode: arp.Suppress}, Static: []Neighbour{{netip.AddrFrom4([4]byte{10, 0, 20, byte(100 + odd)}), frame.MAC{2, 20, 0, 1, 0, 0}}}},
				Gateway:    &SegmentGateway{VRF: "red", Gateway: Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.20.1/24")}, MAC: frame.MAC{2, 0, 0, 0xff, 0, byte(20 + odd)}}},
			},
			{VNI: 40, Tunnel: "vx0", Gateway: &SegmentGateway{VRF: "red", Gateway: Gateway{MAC: frame.MAC{2, 0, 0, 0xdd, 0, byte(this)}}}},
		},
	}
	c.Policies = []Policy{{Name: "some"}}
	c.Segments[2].Policy = []string{"some", ""}[odd]
	if odd == 1 {
		c.Ports = append(c.Ports, Port{Name: "vm30"})
		c.Segments = append(c.Segments, Segment{VNI: 30, Tunnel: "vx0", Members: []Member{{Port: "vm30"}}, Flood: []netip.Addr{peer}, VSIConfig: vswitch.VSIConfig{MaxMACs: 100}})
	}
	red := VRF{Name: "red"}
	for i := range 1000 {
		hop := Hop{Segment: 40, MAC: frame.MAC{2, 0, 0, 0xdd, 0, byte(other)}, Remote: peer}
		if i >= 500 && odd == 1 {
			hop = Hop{Segment: 20, IP: netip.AddrFrom4([4]byte{10, 0, 20, byte(2 + i%50)})}
		}
		red.Routes = append(red.Routes, Route{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16 + byte(i>>8), byte(i), 0}), 24), Via: []Hop{hop}})
	}
	c.VRFs = []VRF{red}
	return c
}

// A large configuration that is applied again and again with changes in other networks costs
// the traffic of networks that stay the same not one frame, bridged or routed, none is there
// twice, and a TCP connection goes on.
func TestReloadUnderTraffic(t *testing.T) {
	l := newLab(t)
	one, two := l.start("one", "192.0.2.1", large(1, 0)), l.start("two", "192.0.2.2", large(2, 0))
	a := one.guest("vm10", "10.0.10.1/24", "10.0.10.254")
	b := two.guest("vm10", "10.0.10.2/24", "10.0.10.254")
	c := two.guest("vm50", "10.0.50.3/24", "10.0.50.254")
	for _, h := range []*netns.Host{a, b} { // room for what the machine's other work delays
		h.IP("link", "set", "vm10", "txqueuelen", "20000")
	}
	c.IP("link", "set", "vm50", "txqueuelen", "20000")
	wantTTL(t, a, "10.0.10.2", 64)
	wantTTL(t, a, "10.0.50.3", 63)

	streams := map[string]*stream{}
	for to, h := range map[string]*netns.Host{"10.0.10.2:9000": b, "10.0.50.3:9000": c} {
		at := netip.MustParseAddrPort(to)
		streams[to] = startStream(t, udpSocket(t, a, netip.MustParseAddrPort("10.0.10.1:0")), udpSocket(t, h, at), at, 200, 8000)
	}
	tcp := startBytes(t, func(listen func(net.Listener, error)) {
		b.Do(func() { listen(net.Listen("tcp", "10.0.10.2:9001")) })
	}, func(dial func(net.Conn, error)) {
		a.Do(func() { dial(net.DialTimeout("tcp", "10.0.10.2:9001", 5*time.Second)) })
	})
	for _, s := range streams {
		s.moves()
	}
	reloads := 12
	if fake.Race {
		reloads = 3
	}
	var took []time.Duration
	for i := 1; i <= reloads; i++ {
		for k, n := range []*site{one, two} {
			cfg := large(k+1, i)
			began := time.Now()
			n.must(cfg)
			took = append(took, time.Since(began))
		}
		moved := tcp.got()
		for _, s := range streams {
			s.moves()
		}
		b.Until("more bytes of TCP", func() bool { return tcp.got() > moved })
	}
	began := time.Now()
	one.must(large(1, reloads))
	same := time.Since(began)
	slices.Sort(took)
	t.Logf("Apply of 10,000 MACs and 1,000 routes, half of them others: %v to %v, median %v; of the same again %v",
		took[0], took[len(took)-1], took[len(took)/2], same)
	for to, s := range streams {
		s.drain()
		s.mu.Lock()
		t.Logf("to %s: %d datagrams, %d arrived, %d twice, %d overtaken, longest gap %v", to, s.sent.Load(), s.count, s.twice, s.overtook, s.longest)
		twice := s.twice
		s.mu.Unlock()
		if m := s.missing(20); len(m) != 0 || twice != 0 {
			t.Errorf("lost: %d and so on, %d twice", m, twice)
		}
	}
	t.Logf("TCP: %d bytes, %d segments sent again, longest gap %v", tcp.got(), a.Nstat()["TcpRetransSegs"], tcp.longest())
	if t.Failed() {
		for _, x := range []*site{one, two} {
			for _, p := range x.Switch().Stats().Ports {
				t.Logf("%s %s: dropped %v in, %v out", x.h.Name, p.Name, p.RxDrops, p.TxDrops)
			}
		}
		t.Logf("at the guest: %d dropped", a.Counter("vm10", "tx_dropped"))
	}
	if n := len(two.dumpOf(10)); n < 5000+2 {
		t.Errorf("%d MACs in VNI 10", n)
	}
	tcp.end()
}

// dumpOf returns the MACs of a network.
func (s *site) dumpOf(vni frame.VNI) (list []frame.MAC) {
	s.l.t.Helper()
	vsi, err := s.Switch().VSI(vni, nil)
	must(s.l.t, err)
	for e := range vsi.FDB().All() {
		list = append(list, e.MAC)
	}
	return list
}

// bytesOf is one TCP connection that carries some 4 MB/s.
type bytesOf struct {
	conns []io.Closer
	ended sync.WaitGroup

	mu  sync.Mutex
	n   int
	max time.Duration
}

func startBytes(t *testing.T, server func(func(net.Listener, error)), client func(func(net.Conn, error))) *bytesOf {
	t.Helper()
	x := new(bytesOf)
	var ln net.Listener
	var c net.Conn
	var err error
	server(func(l net.Listener, e error) { ln, err = l, e })
	must(t, err)
	client(func(conn net.Conn, e error) { c, err = conn, e })
	if err != nil {
		ln.Close()
		t.Fatal(err)
	}
	in, err := ln.Accept()
	must(t, err)
	x.conns = []io.Closer{c, in, ln}
	x.ended.Go(func() {
		b := make([]byte, 8<<10)
		for {
			if _, err := c.Write(b); err != nil {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	x.ended.Go(func() {
		b := make([]byte, 64<<10)
		for at := time.Now(); ; {
			n, err := in.Read(b)
			if err != nil {
				return
			}
			x.mu.Lock()
			x.n += n
			x.max, at = max(x.max, time.Since(at)), time.Now()
			x.mu.Unlock()
		}
	})
	t.Cleanup(x.end)
	return x
}

func (x *bytesOf) got() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.n
}

func (x *bytesOf) longest() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.max
}

func (x *bytesOf) end() {
	for _, c := range x.conns {
		c.Close()
	}
	x.ended.Wait()
}
