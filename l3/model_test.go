package l3

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The golden model: routes are a list of prefixes, the longest that fits wins; neighbours
// are a map. What it says of a packet is a line of text.
type golden struct {
	routes     []goldenRoute
	neighbours map[string]frame.MAC // "vni ip"
	remote     map[string]bool
	waiting    map[string]int // packets
}

type goldenRoute struct {
	prefix netip.Prefix
	does   string // local, drop, link VNI, via VNI IP, router VNI MAC, port
}

func (g *golden) find(dst netip.Addr) string {
	does, bits := "", -1
	for _, r := range g.routes {
		if r.prefix.Contains(dst) && r.prefix.Bits() > bits {
			does, bits = r.does, r.prefix.Bits()
		}
	}
	return does
}

// says is what becomes of a packet to dst with a TTL.
func (g *golden) says(dst netip.Addr, ttl uint8) string {
	does := g.find(dst)
	switch {
	case does == "":
		return "refused, no route"
	case does == "local":
		return "refused, no service"
	case does == "drop":
		return "drop no-route"
	case ttl <= 1:
		return "refused, TTL"
	case does == "port":
		return fmt.Sprintf("port, TTL %d", ttl-1)
	}
	var vni byte
	var rest string
	if n, _ := fmt.Sscanf(does, "router %d %s", &vni, &rest); n == 2 {
		return fmt.Sprintf("VNI %d from %v to %s, TTL %d", vni, gate(vni), rest, ttl-1)
	}
	next := dst
	if n, _ := fmt.Sscanf(does, "via %d %s", &vni, &rest); n == 2 {
		next = netip.MustParseAddr(rest)
	} else {
		fmt.Sscanf(does, "link %d", &vni)
	}
	key := fmt.Sprint(vni, " ", next)
	mac, ok := g.neighbours[key]
	if !ok {
		if g.waiting[key]++; g.waiting[key] > 3 {
			return "drop unresolved"
		}
		return "waits"
	}
	from := gate(vni)
	if g.remote[key] {
		from = own
	}
	return fmt.Sprintf("VNI %d from %v to %v, TTL %d", vni, from, mac, ttl-1)
}

// did is what the gateway has done, in the same words.
func did(v frame.Verdict, f *frame.Frame, v6 bool) string {
	b := f.Bytes()
	ttl := func(at int) uint8 {
		if v6 {
			return b[at+7]
		}
		return b[at+8]
	}
	switch v.Action() {
	case frame.ActReenter:
		return fmt.Sprintf("VNI %d from %v to %v, TTL %d", f.VNI, frame.MAC(b[6:]), frame.MAC(b), ttl(14))
	case frame.ActForward:
		return fmt.Sprintf("port, TTL %d", ttl(0))
	case frame.ActConsume:
		return "waits"
	case frame.ActReply:
		typ := uint16(b[34])<<8 | uint16(b[35])
		names := map[uint16]string{3 << 8: "no route", 3<<8 | 3: "no service", 11 << 8: "TTL"}
		if v6 {
			typ = uint16(b[54])<<8 | uint16(b[55])
			names = map[uint16]string{1 << 8: "no route", 1<<8 | 4: "no service", 3 << 8: "TTL"}
		}
		return "refused, " + names[typ]
	}
	return v.String()
}

// Ten thousand random tables, a dozen packets each.
func TestGolden(t *testing.T) {
	tables := 10_000
	if testing.Short() {
		tables = 500
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for n := range tables {
		goldenTable(t, rng, n)
		if t.Failed() {
			return
		}
	}
}

func goldenTable(t *testing.T, rng *rand.Rand, n int) {
	v6 := n%2 == 1
	l := newLab(t, &GatewayConfig{PerSender: 1000, Total: 100_000})
	l3vni := check.Must(l.vrf.NewInterface(&InterfaceConfig{VNI: 50, MAC: gate(50), Send: l.send(50)}))(t)
	tun := check.Must(l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: l.send(60)}))(t)
	g := &golden{neighbours: map[string]frame.MAC{}, remote: map[string]bool{}, waiting: map[string]int{}}
	whole := 32
	if v6 {
		whole = 128
	}
	for _, vni := range []byte{10, 20} {
		p, _ := addrOf(v6, vni, 254).Prefix(whole - 8)
		if v6 {
			p, _ = addrOf(v6, vni, 254).Prefix(64)
		}
		g.routes = append(g.routes, goldenRoute{p, fmt.Sprint("link ", vni)}, goldenRoute{netip.PrefixFrom(addrOf(v6, vni, 254), whole), "local"})
		if !v6 {
			g.routes = append(g.routes, goldenRoute{netip.PrefixFrom(at4(vni, 0), 32), "drop"}, goldenRoute{netip.PrefixFrom(at4(vni, 255), 32), "drop"})
		}
		for range rng.IntN(6) {
			h, peer := byte(1+rng.IntN(8)), uint16(rng.IntN(2)*7)
			ip := addrOf(v6, vni, h)
			i := l.vrf.Interface(frame.VNI(vni))
			i.neighbours.Learn(&arp.Claim{IP: ip, MAC: host(h), From: frame.NewDest(9, peer)}, 0)
			key := fmt.Sprint(vni, " ", ip)
			g.neighbours[key], g.remote[key] = host(h), peer != 0
		}
	}
	target := func() netip.Addr {
		switch rng.IntN(3) {
		case 0:
			return addrOf(v6, byte(10*(1+rng.IntN(2))), byte(rng.IntN(10)))
		case 1:
			return addrOf(v6, byte(10*(1+rng.IntN(2))), byte(250+rng.IntN(6)))
		}
		if v6 {
			return netip.AddrFrom16([16]byte{0xfd, byte(rng.IntN(2)), byte(rng.IntN(4)), byte(rng.IntN(30)), 15: byte(1 + rng.IntN(4))})
		}
		return netip.AddrFrom4([4]byte{10, byte(rng.IntN(3)), byte(rng.IntN(30)), byte(rng.IntN(256))})
	}
	for range rng.IntN(30) {
		p, _ := target().Prefix(rng.IntN(whole + 1))
		r, does := Route{Prefix: p}, "drop"
		switch rng.IntN(5) {
		case 0, 1:
			vni, h := byte(10*(1+rng.IntN(2))), byte(1+rng.IntN(8))
			r.Via = []NextHop{{Interface: l.vrf.Interface(frame.VNI(vni)), IP: addrOf(v6, vni, h)}}
			does = fmt.Sprint("via ", vni, " ", addrOf(v6, vni, h))
		case 2:
			r.Via, does = []NextHop{{Interface: l3vni, MAC: host(77)}}, fmt.Sprint("router 50 ", host(77))
		case 3:
			r.Via, does = []NextHop{{Interface: tun}}, "port"
		}
		at := -1
		for k, x := range g.routes {
			if x.prefix == p {
				at = k
			}
		}
		builtIn := at >= 0 && at < 2*len([]int{10, 20})+map[bool]int{false: 4}[v6]
		if err := l.vrf.Add(r); (err != nil) != builtIn {
			t.Errorf("table %d: add %v: %v", n, p, err)
			return
		}
		switch {
		case builtIn:
		case at >= 0:
			g.routes[at].does = does
		default:
			g.routes = append(g.routes, goldenRoute{p, does})
		}
		if rng.IntN(8) == 0 && !builtIn {
			check.True(t, l.vrf.Delete(p), "table %d: delete %v", n, p)
			for k := range g.routes {
				if g.routes[k].prefix == p {
					g.routes = append(g.routes[:k], g.routes[k+1:]...)
					break
				}
			}
		}
	}
	s := between(v6, 1, 4)
	s.payload = 60 // longer than an error's quote needs
	in := s.bytes(t)
	for range 12 {
		dst, ttl := target(), uint8(rng.IntN(4))
		b := aimed(in, dst, ttl)
		f := frame.Make(b)
		f.From, f.VNI = frame.NewDest(1, 0), 10
		v := l.i10.Process(&f, frame.At{})
		if got, want := did(v, &f, v6), g.says(dst, ttl); got != want {
			t.Errorf("table %d: to %v, TTL %d: %s, want %s", n, dst, ttl, got, want)
			return
		}
	}
}

// aimed changes destination and TTL of a packet, and its header checksum.
func aimed(b []byte, dst netip.Addr, ttl uint8) []byte {
	b = bytes.Clone(b)
	if dst.Is6() {
		copy(b[38:], dst.AsSlice())
		b[21] = ttl
		return b
	}
	copy(b[30:], dst.AsSlice())
	b[22], b[24], b[25] = ttl, 0, 0
	sum := ^sum16(b[14:34])
	b[24], b[25] = byte(sum>>8), byte(sum)
	return b
}
