package l3

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A blocksLab is a node with a link (VNI 20), a tunnel for IP (VNI 60) and a TUN (VNI 61); of
// the nodes, near is on the link, and distant is not.
type blocksLab struct {
	*lab
	tun, bare     *Interface
	stub          *stubTunnel
	near, distant Node
}

func newBlocksLab(t testing.TB) *blocksLab {
	l := &blocksLab{lab: newLab(t, nil)}
	l.tun, l.stub = l.tunnel()
	var err error
	l.bare, err = l.vrf.NewInterface(&InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0), Send: l.send(61)})
	must(t, err)
	l.knows(l.i20, 4, 0)
	l.near = Node{Addr: at4(20, 4), Tunnel: NextHop{Interface: l.tun, Peer: 2}, Direct: NextHop{Interface: l.i20, IP: at4(20, 4)}}
	l.distant = Node{Addr: netip.MustParseAddr("198.51.100.3"), Tunnel: NextHop{Interface: l.tun, Peer: 3}, Direct: NextHop{Interface: l.bare}}
	return l
}

func (l *blocksLab) pool(mode Encapsulation) *Blocks {
	l.t.Helper()
	p, err := l.vrf.NewBlocks(mode, netip.MustParsePrefix("10.0.20.0/24"), netip.MustParsePrefix("fd00:14::/32"))
	must(l.t, err)
	return p
}

// way sends a packet to an address, and returns how it goes on.
func (l *blocksLab) way(dst string) string {
	l.t.Helper()
	s := between(strings.Contains(dst, ":"), 1, 4)
	s.dst = netip.MustParseAddr(dst)
	v, f := l.in(l.i10, s.bytes(l.t))
	if v == frame.Reenter {
		return fmt.Sprintf("vni %d to %v", f.VNI, frame.MAC(f.Bytes()))
	}
	return v.String()
}

// ways are all routes of the VRF.
func (l *blocksLab) ways() (all []string) {
	for _, r := range l.vrf.Routes() {
		all = append(all, fmt.Sprint(r.Prefix, r.Via))
	}
	return all
}

var (
	blockA = netip.MustParsePrefix("10.244.1.0/26")
	blockB = netip.MustParsePrefix("10.244.2.0/26")
	blockC = netip.MustParsePrefix("10.244.3.0/26")
	block6 = netip.MustParsePrefix("fd99:1::/122")
)

// Every mode, and every change from one to another: all blocks go the new way.
func TestBlocksModes(t *testing.T) {
	const link = "vni 20 to 02:00:00:00:01:04"
	ways := map[Encapsulation][2]string{
		Always:      {"forward 6/2", "forward 6/3"},
		CrossSubnet: {link, "forward 6/3"},
		Never:       {link, "forward 7"},
	}
	for from := range ways {
		for to := range ways {
			l := newBlocksLab(t)
			p := l.pool(from)
			must(t, p.Set(blockA, l.near))
			must(t, p.Set(blockB, l.distant))
			must(t, p.Set(blockC))
			check := func(mode Encapsulation) {
				t.Helper()
				if a, b := l.way("10.244.1.9"), l.way("10.244.2.9"); a != ways[mode][0] || b != ways[mode][1] || p.Mode() != mode {
					t.Errorf("%v to %v, mode %v: near %q, distant %q", from, to, p.Mode(), a, b)
				}
				if c := l.way("10.244.3.9"); c != "drop no-route" {
					t.Errorf("mode %v: of nobody: %s", mode, c)
				}
			}
			check(from)
			must(t, p.SetMode(to))
			check(to)
			// What is set now is of the new mode.
			must(t, p.Set(blockA, l.distant))
			if got := l.way("10.244.1.9"); got != ways[to][1] {
				t.Errorf("%v: %s", to, got)
			}
		}
	}
}

// Blocks of IPv6 follow the mode too, and the address of their node decides what is near.
func TestBlocksIPv6(t *testing.T) {
	l := newBlocksLab(t)
	p := l.pool(CrossSubnet)
	six := Node{Addr: at6(20, 4), Tunnel: NextHop{Interface: l.tun, Peer: 1}, Direct: NextHop{Interface: l.i20, IP: at6(20, 4)}}
	far := six
	far.Addr = netip.MustParseAddr("2001:db8::9")
	must(t, p.Set(block6, six))
	if got := l.way("fd99:1::9"); got != "vni 20 to 02:00:00:00:01:04" {
		t.Error(got)
	}
	must(t, p.Set(block6, far))
	if got := l.way("fd99:1::9"); got != "forward 6/1" {
		t.Error(got)
	}
}

// A block that several nodes have: flows share them, and when one goes the others' stay.
func TestBlocksOfSeveralNodes(t *testing.T) {
	l := newBlocksLab(t)
	p := l.pool(Always)
	third := Node{Addr: netip.MustParseAddr("198.51.100.1"), Tunnel: NextHop{Interface: l.tun, Peer: 1}}
	flows := func() (w []frame.Verdict) {
		for k := range uint16(600) {
			s := between(false, 1, 4)
			s.dst, s.sport = netip.MustParseAddr("10.244.1.9"), k
			v, _ := l.in(l.i10, s.bytes(t))
			w = append(w, v)
		}
		return w
	}
	nodes := []Node{l.near, l.distant, third}
	must(t, p.Set(blockA, nodes...))
	nodes[0], nodes[1] = Node{}, Node{} // the pool has its own
	all := flows()
	for _, peer := range []uint16{1, 2, 3} {
		n := 0
		for _, v := range all {
			if v == frame.Forward(frame.NewDest(6, peer)) {
				n++
			}
		}
		if n < 120 || n > 280 {
			t.Errorf("peer %d has %d of 600 flows", peer, n)
		}
	}
	// The third has no direct way; the pool stays as it is, for all of them.
	if err := p.SetMode(Never); err == nil || !slices.Equal(all, flows()) {
		t.Errorf("%v, or flows have moved", err)
	}
	must(t, p.SetMode(CrossSubnet))
	mixed := flows()
	for k, v := range mixed {
		if was := all[k]; was != frame.Forward(frame.NewDest(6, 2)) && v != was && v != frame.Reenter {
			t.Errorf("flow %d: %v, was %v", k, v, was)
		}
	}
	must(t, p.SetMode(Always))
	if !slices.Equal(all, flows()) {
		t.Error("there and back, and flows have moved")
	}
	must(t, p.Set(blockA, l.near, l.distant))
	for k, v := range flows() {
		if all[k] != frame.Forward(frame.NewDest(6, 1)) && v != all[k] {
			t.Errorf("flow %d moved from %v to %v, though its node is there", k, all[k], v)
		}
	}
}

// What fails changes nothing, and says what it failed for.
func TestBlocksErrors(t *testing.T) {
	l := newBlocksLab(t)
	noDirect, noTunnel := l.distant, l.near
	noDirect.Direct, noTunnel.Tunnel = NextHop{}, NextHop{}
	p := l.pool(CrossSubnet)
	must(t, p.Set(blockA, noTunnel))
	must(t, p.Set(blockB, noDirect))
	must(t, p.Set(blockC, l.near, l.distant))
	blue := l.iface(l.g.VRF("blue"), 110, false)
	stranger := Node{Addr: l.distant.Addr, Tunnel: NextHop{Interface: blue, IP: at4(110, 1)}}
	noPeer := Node{Addr: l.distant.Addr, Tunnel: NextHop{Interface: l.tun, Peer: 9}}
	was := l.ways()
	if len(was) != 3 {
		t.Fatal(was)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{p.SetMode(Never), "block 10.244.2.0/26: node 198.51.100.3: Direct.Interface: nil, required in mode never"},
		{p.SetMode(Always), "block 10.244.1.0/26: node 10.0.20.4: Tunnel.Interface: nil, required in mode always"},
		{p.SetMode(3), "blocks: mode 3, allowed are always, cross-subnet, never"},
		{p.Set(blockC, l.near, noTunnel, Node{Addr: l.distant.Addr}), "block 10.244.3.0/26: node 198.51.100.3: Tunnel.Interface: nil, required in mode cross-subnet"},
		{p.Set(blockC, stranger), "route 10.244.3.0/26: next hop: Interface: nil, closed or of another VRF"},
		{p.Set(blockC, noPeer), "route 10.244.3.0/26: next hop vni 60: Peer: the tunnel has no peer 9"},
		{p.Set(netip.MustParsePrefix("10.244.9.1/26"), l.near), "route 10.244.9.1/26: allowed are prefixes without bits"},
		{p.Set(netip.Prefix{}, l.near), "allowed are prefixes"},
		{p.Set(netip.MustParsePrefix("10.0.20.0/24"), l.distant), "belongs to an interface's address"},
		{p.Set(block6, l.near), "IP: required is one of the prefix's family"},
	} {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), "l3: VRF red: ") || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want something about %q", c.err, c.want)
		}
	}
	if !slices.Equal(l.ways(), was) || p.Mode() != CrossSubnet {
		t.Errorf("mode %v, %v\nwas %v", p.Mode(), l.ways(), was)
	}
	// Blocks that were not taken are not there when the mode changes.
	p.Delete(blockA)
	p.Delete(blockB)
	must(t, p.SetMode(Always))
	if got := l.ways(); len(got) != 1 || got[0] != "10.244.3.0/26 [vni 60 peer 198.51.100.2 vni 60 peer 198.51.100.3]" {
		t.Error(got)
	}
	// A peer that is gone by then.
	delete(l.stub.names, 3)
	must(t, p.SetMode(Never))
	if err := p.SetMode(Always); err == nil || p.Mode() != Never || l.way("10.244.3.9") == "drop no-route" {
		t.Errorf("%v, mode %v", err, p.Mode())
	}
	for _, c := range []struct {
		mode    Encapsulation
		subnets []netip.Prefix
		want    string
	}{
		{3, nil, "mode 3, allowed are"},
		{CrossSubnet, []netip.Prefix{{}}, "subnet invalid Prefix"},
		{CrossSubnet, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("10.0.20.4/24")}, "subnet 10.0.20.4/24"},
	} {
		if p, err := l.vrf.NewBlocks(c.mode, c.subnets...); err == nil || p != nil || !strings.HasPrefix(err.Error(), "l3: VRF red: blocks: "+c.want) {
			t.Errorf("%v, want something about %s", err, c.want)
		}
	}
}

// One node of many that cannot be had the new way keeps all from changing.
func TestBlocksChangesAsAWhole(t *testing.T) {
	l := newBlocksLab(t)
	p := l.pool(Never)
	for k := range byte(30) {
		must(t, p.Set(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, k, 0}), 24), l.near))
	}
	must(t, p.Set(netip.MustParsePrefix("10.245.0.0/24"), l.distant))
	was := l.ways()
	delete(l.stub.names, 3)
	for range 5 {
		if err := p.SetMode(Always); err == nil || !strings.Contains(err.Error(), "route 10.245.0.0/24: next hop vni 60: Peer: the tunnel has no peer 3") {
			t.Error(err)
		}
		if got := l.ways(); !slices.Equal(got, was) || p.Mode() != Never {
			t.Fatalf("mode %v, %v", p.Mode(), got)
		}
	}
}

// A block that is deleted is gone, and does not come back with the next mode; other routes
// are none of the pool's.
func TestBlocksDelete(t *testing.T) {
	l := newBlocksLab(t)
	p := l.pool(Always)
	other := netip.MustParsePrefix("10.250.0.0/16")
	must(t, l.vrf.Add(Route{other, []NextHop{l.distant.Direct}}))
	must(t, p.Set(blockA, l.near))
	if p.Delete(blockB) || p.Delete(other) || !p.Delete(blockA) || p.Delete(blockA) {
		t.Error("Delete")
	}
	must(t, p.SetMode(Never))
	if got := l.ways(); !slices.Equal(got, []string{"10.250.0.0/16 [vni 61]"}) || l.way("10.244.1.9") != "reply" {
		t.Errorf("%v; %s", got, l.way("10.244.1.9"))
	}
	must(t, p.Set(blockA, l.near))
	if got := l.way("10.244.1.9"); got != "vni 20 to 02:00:00:00:01:04" {
		t.Error(got)
	}
	// Addresses of a block of our own go where they are, what is left of it goes nowhere.
	must(t, p.Set(blockC))
	must(t, l.vrf.Add(Route{netip.MustParsePrefix("10.244.3.7/32"), []NextHop{l.distant.Direct}}))
	if a, b := l.way("10.244.3.7"), l.way("10.244.3.8"); a != "forward 7" || b != "drop no-route" {
		t.Errorf("%s, %s", a, b)
	}
}

// The tunnel of a node may be a segment of VXLAN with a router's MAC.
func TestBlocksOverAnL3VNI(t *testing.T) {
	l := newBlocksLab(t)
	l3vni, err := l.vrf.NewInterface(&InterfaceConfig{VNI: 50, MAC: gate(50), Send: l.send(50)})
	must(t, err)
	p := l.pool(CrossSubnet)
	n := l.distant
	n.Tunnel = NextHop{Interface: l3vni, MAC: host(77)}
	must(t, p.Set(blockA, n))
	if got := l.way("10.244.1.9"); got != "vni 50 to 02:00:00:00:01:4d" {
		t.Error(got)
	}
}

// While the mode changes, every packet goes one way or the other, and all blocks at once.
func TestBlocksUnderTraffic(t *testing.T) {
	l := newBlocksLab(t)
	p := l.pool(Always)
	must(t, p.Set(blockA, l.near))
	must(t, p.Set(blockB, l.distant))
	in := between(false, 1, 4)
	in.dst = netip.MustParseAddr("10.244.1.9")
	b := in.bytes(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(stop)
		for k := range 400 {
			if err := p.SetMode([]Encapsulation{Never, Always}[k%2]); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if r := l.vrf.Routes(); len(r) != 2 || (r[0].Via[0].Interface == l.tun) != (r[1].Via[0].Interface == l.tun) {
				t.Errorf("two modes at once: %v", r)
				return
			}
			p.Mode()
		}
	})
	for done := false; !done; {
		select {
		case <-stop:
			done = true
		default:
		}
		v, f := l.in(l.i10, b)
		if v != frame.Forward(frame.NewDest(6, 2)) && (v != frame.Reenter || f.VNI != 20) {
			t.Fatalf("%v", v)
		}
	}
	wg.Wait()
	if len(l.injected) != 0 {
		t.Errorf("%d sent", len(l.injected))
	}
}

func TestEncapsulationNames(t *testing.T) {
	for e, name := range map[Encapsulation]string{Always: "always", CrossSubnet: "cross-subnet", Never: "never", 3: "invalid", 255: "invalid"} {
		if e.String() != name {
			t.Errorf("%d: %q", e, e)
		}
	}
}

// Traffic over a pool's routes allocates nothing, whatever the mode.
func TestBlocksAllocations(t *testing.T) {
	l := newBlocksLab(t)
	p := l.pool(Always)
	must(t, p.Set(blockA, l.near))
	s := between(false, 1, 4)
	s.dst = netip.MustParseAddr("10.244.1.9")
	in := s.bytes(t)
	for _, mode := range []Encapsulation{Always, CrossSubnet, Never} {
		must(t, p.SetMode(mode))
		f := frame.Make(in)
		whole := f.Headroom()
		if n := testing.AllocsPerRun(100, func() {
			f.Push(f.Headroom() - whole)
			copy(f.Bytes(), in)
			f.Kind, f.VNI, f.From = frame.Ethernet, 10, frame.NewDest(1, 0)
			if v := l.i10.Process(&f, frame.At{}); v != frame.Reenter && v.Action() != frame.ActForward {
				t.Fatal(v)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", mode, n)
		}
	}
}
