package l3

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/policy"
)

// A cache keeps the answers of Lookup until Watch says that they have changed.
type cache struct {
	*star
	r     *rand.Rand
	kept  map[asking]answer
	told  [2]int // of one MAC, and of all
	right [2]int // answers that were kept and used: of addresses, and of ports

	rules *policy.Policy // stateless, of filters
}

type asking struct {
	t  frame.Tuple
	to frame.MAC
}

type answer struct {
	hop frame.Hop
	ok  bool
}

// packet is a random packet from segment 10, and what to ask about it.
func (c *cache) packet() (b []byte, a asking) {
	v6 := c.r.IntN(2) == 0
	p := between(v6, 1, byte(1+c.r.IntN(4)))
	p.sport = uint16(c.r.IntN(2))
	if !v6 && c.r.IntN(2) == 0 {
		p.dst = netip.AddrFrom4([4]byte{172, 16, 0, 1})
	}
	switch c.r.IntN(20) {
	case 0:
		p.to = own
	case 1:
		p.to = host(2)
	case 2:
		p.src = netip.MustParseAddr(map[bool]string{false: "169.254.1.1", true: "fe80::1"}[v6])
	case 3:
		p.dst = addrOf(v6, 20, 254)
	case 4:
		p.dst = netip.MustParseAddr(map[bool]string{false: "10.0.20.255", true: "ff02::1"}[v6])
	case 5:
		p.src = addrOf(v6, 10, 254)
	case 6:
		p.proto, p.icmp = layers.IPProtocolICMPv4, 8
		if v6 {
			p.proto, p.icmp = layers.IPProtocolICMPv6, 128
		}
	}
	b = p.bytes(c.t)
	t, _ := frame.TupleOf(b)
	if c.r.IntN(2) == 0 {
		t = t.Hosts()
	}
	return b, asking{t, p.to}
}

// compare asks about a packet, or takes the answer that was kept, and has the gateway route it.
func (c *cache) compare() {
	b, a := c.packet()
	x, kept := c.kept[a]
	if !kept {
		x.hop, _, x.ok = c.i10.Lookup(a.to, a.t)
		c.kept[a] = x
	}
	v, f := c.in(c.i10, b)
	got := frame.Hop{VNI: f.VNI, Dst: frame.MAC(f.Bytes()), Src: frame.MAC(f.Bytes()[6:]), Ports: x.hop.Ports}
	if x.ok && (v != frame.Reenter || got != x.hop) {
		c.t.Fatalf("%v to %v, kept %v: %+v; the gateway says %v, %+v", a.t, a.to, kept, x.hop, v, got)
	}
	if x.ok && kept {
		c.right[map[bool]int{true: 1}[x.hop.Ports]]++
	}
	if !x.ok && v == frame.Reenter && a.t.Protocol != 0 {
		if hop, _, ok := c.i10.Lookup(a.to, a.t); !ok {
			c.t.Fatalf("%v to %v is routed to %+v, and Lookup says %+v", a.t, a.to, got, hop)
		}
	}
}

// change does one of the things that may change answers.
func (c *cache) change() {
	c.now += frame.Tick(c.r.IntN(2))
	n := byte(1 + c.r.IntN(4))
	table, ip := c.i20.neighbours, addrOf(c.r.IntN(2) == 0, 20, n)
	switch c.r.IntN(18) {
	case 0, 1, 2:
		table.Learn(&arp.Claim{IP: ip, MAC: host(n), From: frame.NewDest(1, uint16(c.r.IntN(2)))}, c.now)
	case 3:
		table.Learn(&arp.Claim{IP: ip, MAC: host(n + 10), From: frame.NewDest(2, 0)}, c.now)
	case 4:
		table.Delete(ip)
	case 5:
		check.OK(c.t, table.Set(ip, host(n+byte(c.r.IntN(2))*20), arp.Static, 0))
	case 6:
		table.Sweep(c.now+frame.Tick(c.r.IntN(2)*400), nil)
	case 7:
		table.FlushDest(frame.NewDest(1, 0))
	case 8:
		check.OK(c.t, c.vrf.Add(Route{behind, c.hops[c.r.IntN(3):]}))
	case 9:
		c.vrf.Delete(behind)
	case 10, 11:
		check.OK(c.t, c.vrf.SetDown(c.hops[c.r.IntN(len(c.hops))], c.r.IntN(2) == 0))
	case 12:
		check.OK(c.t, c.vrf.Add(Route{netip.PrefixFrom(at4(20, n), 32), []NextHop{{Interface: c.i20, MAC: host(n + 30)}}}))
	case 13:
		c.vrf.Delete(netip.PrefixFrom(at4(20, n), 32))
	case 14:
		for _, i := range []*Interface{c.i10, c.i20} {
			i.Housekeep(c.now)
		}
	case 16:
		deny := policy.Rule{Action: policy.Deny, Protocol: 17, SrcPorts: []policy.PortRange{{First: 1, Last: 1}}, Direction: policy.Direction(c.r.IntN(3))}
		check.OK(c.t, c.rules.Update(&policy.Config{Stateless: true, Rules: []policy.Rule{deny}[c.r.IntN(2):]}))
	case 17:
		in, out := Filter(c.rules.Ingress()), Filter(c.rules.Egress())
		if c.r.IntN(2) == 0 {
			in = nil
		}
		c.i10.SetFilters(in, nil)
		if c.r.IntN(2) == 0 {
			out = nil
		}
		c.i20.SetFilters(nil, out)
	case 15:
		if c.r.IntN(4) > 0 {
			return
		}
		check.OK(c.t, c.i20.Close())
		c.i20 = c.iface(c.vrf, 20, c.r.IntN(2) == 0)
		for k := range c.hops {
			c.hops[k].Interface = c.i20
		}
	}
}

// TestLookup: while everything changes that may change routes and neighbours, what Lookup says is what the gateway does, until the
// function of Watch is called.
func TestLookup(t *testing.T) {
	for seed := range uint64(5) {
		c := &cache{star: newStar(t, 4), r: rand.New(rand.NewPCG(seed, 1)), kept: map[asking]answer{}}
		c.rules = check.Must(policy.New(&policy.Config{Stateless: true}))(t)
		stop := c.i10.Watch(func(mac frame.MAC) {
			if mac.IsZero() {
				c.told[1]++
				clear(c.kept)
				return
			}
			c.told[0]++
			for k, x := range c.kept {
				if x.hop.Dst == mac {
					delete(c.kept, k)
				}
			}
		})
		for range 8000 {
			switch {
			case c.r.IntN(40) == 0:
				c.change()
			default:
				c.compare()
			}
			// What has no way now may have one later, and nobody is told.
			for k, x := range c.kept {
				if !x.ok {
					delete(c.kept, k)
				}
			}
		}
		if min(c.right[0], c.right[1]) < 10 || min(c.told[0], c.told[1]) < 10 {
			t.Errorf("answers kept and right: %v; told %v", c.right, c.told)
		}
		stop()
		was := c.told
		check.OK(t, c.vrf.Add(Route{behind, c.hops}))
		check.Equal(t, "told after the end", c.told, was)
	}
}

// TestCarriedRoutes: what an Offload has routed is counted as if the gateway had.
func TestCarriedRoutes(t *testing.T) {
	l := newLab(t, nil)
	l.knows(l.i20, 2, 0)
	for _, v6 := range []bool{false, true} {
		b := between(v6, 1, 2).bytes(t)
		tuple, _ := frame.TupleOf(b)
		_, carried, ok := l.i10.Lookup(gate(10), tuple)
		check.Need(t, ok, "not routed")
		check.Equal(t, "verdict", l.verdict(l.i10, b), frame.Reenter)
		carried(frame.Count{Frames: 3, Bytes: 300})
	}
	st := l.i10.Stats()
	check.Equal(t, "IPv4", st.Routed4, 4)
	check.Equal(t, "IPv6", st.Routed6, 4)
}
