package l3

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// advertising returns an interface with router advertisements, and its responder.
func (l *lab) advertising(anycast bool, ra *RouterAdvertisements) (*Interface, *arp.Responder) {
	r := check.Must(arp.NewResponder(&arp.Config{Table: check.Must(arp.NewTable(nil))(l.t)}))(l.t)
	return check.Must(l.vrf.NewInterface(&InterfaceConfig{
		VNI: 30, MAC: gate(30), VTEPMAC: own, Anycast: anycast, Neighbours: r, Send: l.send(30), RouterAdvertisements: ra,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.30.254/24"), netip.MustParsePrefix("fd00:30::fe/64"), netip.MustParsePrefix("fd00:30::ff/64"), netip.MustParsePrefix("fd00:31::fe/80")},
	}))(l.t), r
}

// advert is a router advertisement as gopacket reads it.
type advert struct {
	*layers.ICMPv6RouterAdvertisement
	eth  *layers.Ethernet
	ip   *layers.IPv6
	opts map[layers.ICMPv6Opt][][]byte
}

func (l *lab) advert(x injected) (a advert) {
	l.t.Helper()
	p := packetOf(l.t, x.f.Bytes(), layers.LayerTypeEthernet)
	a.eth, a.ip = p.LinkLayer().(*layers.Ethernet), p.NetworkLayer().(*layers.IPv6)
	a.ICMPv6RouterAdvertisement, _ = p.Layer(layers.LayerTypeICMPv6RouterAdvertisement).(*layers.ICMPv6RouterAdvertisement)
	if a.ICMPv6RouterAdvertisement == nil {
		l.t.Fatalf("no router advertisement: %v", p)
	}
	a.opts = map[layers.ICMPv6Opt][][]byte{}
	for _, o := range a.Options {
		a.opts[o.Type] = append(a.opts[o.Type], o.Data)
	}
	return a
}

// TestRouterAdvertisement: gopacket reads each field, on the wire as RFC 4861 and RFC 8106 have it.
func TestRouterAdvertisement(t *testing.T) {
	l := newLab(t, nil)
	i, _ := l.advertising(false, &RouterAdvertisements{Interval: time.Minute, MTU: 1430, DNS: []netip.Addr{netip.MustParseAddr("fd00::53"), netip.MustParseAddr("fd00::54")}, Managed: true})
	i.Housekeep(1)
	check.Equal(t, "frames", len(l.injected), 1)
	check.Equal(t, "to", l.injected[0].to, frame.Dest(0))
	a := l.advert(l.injected[0])
	check.Equal(t, "MACs", [2]string{a.eth.SrcMAC.String(), a.eth.DstMAC.String()}, [2]string{gate(30).String(), "33:33:00:00:00:01"})
	check.Equal(t, "addresses", [2]string{a.ip.SrcIP.String(), a.ip.DstIP.String()}, [2]string{arp.LinkLocal(gate(30)).String(), "ff02::1"})
	check.Equal(t, "hop limits", [2]uint8{a.ip.HopLimit, a.ICMPv6RouterAdvertisement.HopLimit}, [2]uint8{255, 64})
	check.True(t, a.ManagedAddressConfig() && !a.OtherConfig(), "flags %x", a.Flags)
	check.Equal(t, "lifetime", a.RouterLifetime, 180)
	check.Equal(t, "MAC", string(a.opts[layers.ICMPv6OptSourceAddress][0]), string(l.injected[0].f.Bytes()[6:12]))
	check.Equal(t, "MTU", binary.BigEndian.Uint32(a.opts[layers.ICMPv6OptMTU][0][2:]), 1430)
	prefixes := a.opts[layers.ICMPv6OptPrefixInfo]
	check.Equal(t, "prefixes", len(prefixes), 2) // two addresses are in one
	for k, want := range []struct {
		prefix string
		flags  byte
	}{{"fd00:30::/64", 0xc0}, {"fd00:31::/80", 0x80}} {
		p := prefixes[k]
		got := netip.PrefixFrom(netip.AddrFrom16([16]byte(p[14:])), int(p[0]))
		check.True(t, got.String() == want.prefix && p[1] == want.flags, "%v, flags %x, want %+v", got, p[1], want)
		check.Equal(t, "lifetimes", [2]uint32{binary.BigEndian.Uint32(p[2:]), binary.BigEndian.Uint32(p[6:])}, [2]uint32{2592000, 604800})
	}
	dns := a.opts[layers.ICMPv6Opt(25)][0]
	check.Equal(t, "DNS", netip.AddrFrom16([16]byte(dns[22:])).String(), "fd00::54")
	check.Equal(t, "DNS lifetime", binary.BigEndian.Uint32(dns[2:]), 180)

	check.OK(t, i.Close())
	check.Equal(t, "lifetime at the end", l.advert(l.injected[1]).RouterLifetime, 0)
}

// TestAdvertisedLessOften: three soon, and then each between a third of the interval and the whole. Nothing of lifetime 0 comes
// from an anycast gateway that ends, since others go on.
func TestAdvertisedLessOften(t *testing.T) {
	l := newLab(t, nil)
	i, _ := l.advertising(true, &RouterAdvertisements{Interval: 5 * time.Minute, NoDefault: true})
	var at []int
	for now := range 7200 {
		i.Housekeep(frame.Tick(now + 1))
		if n := len(l.injected); n > len(at) {
			at = append(at, now)
		}
	}
	gaps := make([]int, len(at)-1)
	for k := range gaps {
		gaps[k] = at[k+1] - at[k]
	}
	soon, rest := gaps[:2], gaps[2:]
	if at[0] != 0 || slices.Max(soon) > 16 || slices.Min(soon) < 5 || slices.Max(rest) > 300 || slices.Min(rest) < 100 || len(slices.Compact(slices.Clone(rest))) < 10 {
		t.Errorf("%v, %v, %v", at[0], soon, rest)
	}
	a := l.advert(l.injected[0])
	check.True(t, a.RouterLifetime == 0 && a.opts[layers.ICMPv6OptMTU] == nil && a.Flags == 0, "%+v", a)
	check.OK(t, i.Close())
	check.Equal(t, "frames", len(l.injected), len(at))
}

// TestSolicited: a host gets an answer for itself where it is, one without an address one to all there. An anycast gateway leaves what
// came through a tunnel to the VTEP there, and no host gets more than its share.
func TestSolicited(t *testing.T) {
	vrrp := frame.MAC{0, 0, 0x5e, 0, 2, 1}
	ask := func(src string, mac frame.MAC) []byte {
		ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: netip.MustParseAddr(src).AsSlice(), DstIP: netip.MustParseAddr("ff02::2").AsSlice()}
		c := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(133, 0)}
		c.SetNetworkLayerForChecksum(ip)
		rs := &layers.ICMPv6RouterSolicitation{}
		h := host(1)
		if src != "::" {
			rs.Options = layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: mac[:]}}
		}
		return packets.Of(&layers.Ethernet{SrcMAC: h[:], DstMAC: []byte{0x33, 0x33, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv6}, ip, c, rs)
	}
	for _, c := range []struct {
		src             string
		tunnel, anycast bool
		to              string // "" for no answer
	}{
		{"fe80::1", false, false, "fe80::1"},
		{"::", false, false, "ff02::1"},
		{"fe80::1", true, false, "fe80::1"},
		{"fe80::1", false, true, "fe80::1"},
		{"fe80::1", true, true, ""},
	} {
		l := newLab(t, nil)
		_, r := l.advertising(c.anycast, &RouterAdvertisements{})
		f := frame.Make(ask(c.src, host(1)))
		from := frame.NewDest(3, 0)
		if c.tunnel {
			from = frame.NewDest(3, 7)
		}
		f.From, f.Tunnel = from, c.tunnel
		check.Equal(t, "verdict", r.Process(&f, frame.At{Tick: 5}), frame.Continue) // for other routers
		if c.to == "" {
			check.Equal(t, "frames", len(l.injected), 0)
			continue
		}
		check.Equal(t, "frames", len(l.injected), 1)
		check.Equal(t, "to", l.injected[0].to, from)
		a, mac := l.advert(l.injected[0]), host(1).String()
		if c.src == "::" {
			mac = "33:33:00:00:00:01"
		}
		check.Equal(t, "address and MAC", [2]string{a.ip.DstIP.String(), a.eth.DstMAC.String()}, [2]string{c.to, mac})
		for range 1000 {
			f := frame.Make(ask(c.src, host(1)))
			f.From, f.Tunnel = from, c.tunnel
			r.Process(&f, frame.At{Tick: 5})
		}
		if n := len(l.injected); n > 100 {
			t.Errorf("%s: %d answers in a second", c.src, n)
		}
	}

	l := newLab(t, nil)
	_, r := l.advertising(false, &RouterAdvertisements{})
	f := frame.Make(ask("fe80::1", host(1)))
	f.From, f.Tunnel = frame.NewDest(3, 0), true
	r.Process(&f, frame.At{Tick: 5})
	check.Equal(t, "answers to a peer without a number, who may be anybody", len(l.injected), 0)
	f = frame.Make(ask("fe80::1", vrrp))
	f.From = frame.NewDest(3, 0)
	r.Process(&f, frame.At{Tick: 5})
	check.Need(t, len(l.injected) == 1, "%d answers to a router of VRRP", len(l.injected))
	check.Equal(t, "MAC", l.advert(l.injected[0]).eth.DstMAC.String(), vrrp.String())
}

// TestAnycastAdvertisementsStay: the gateway's own go to no tunnel if other VTEPs have the same gateway, and those of hosts do. A segment
// whose ports reach only the gateway has them too.
func TestAnycastAdvertisementsStay(t *testing.T) {
	for anycast, want := range map[bool]frame.Verdict{true: frame.FloodLocal, false: frame.Continue} {
		l := newLab(t, nil)
		i, r := l.advertising(anycast, &RouterAdvertisements{})
		i.Housekeep(1)
		access := check.Must(r.With(arp.Access))(t)
		for _, r := range []*arp.Responder{r, access} {
			check.Equal(t, "verdict", r.Process(&l.injected[0].f, frame.At{Tick: 1}), want)
		}
		c := i.Config()
		c.MAC = host(5)
		f := frame.Make((&Interface{cfg: c}).advertisement(false))
		f.From = frame.NewDest(1, 0)
		check.Equal(t, "verdict on those of a host", r.Process(&f, frame.At{Tick: 1}), frame.Continue)
	}
}

// TestAdvertisedMTU: hosts hear of another MTU at once, unless the settings say one, and nothing again if it stays.
func TestAdvertisedMTU(t *testing.T) {
	for _, set := range []int{0, 1500} {
		l := newLab(t, nil)
		i, _ := l.advertising(false, &RouterAdvertisements{MTU: set})
		i.SetHostMTU(1450)
		i.Housekeep(1)
		for n, mtu := range []int{1450, 1400, 1400} {
			i.SetHostMTU(mtu)
			i.Housekeep(2)
			want := mtu
			if set != 0 {
				want = set
			}
			check.Need(t, len(l.injected) == min(n, 1)+1, "%d advertisements after %d", len(l.injected), mtu)
			a := l.advert(l.injected[len(l.injected)-1])
			check.Equal(t, "MTU", int(binary.BigEndian.Uint32(a.opts[layers.ICMPv6OptMTU][0][2:])), want)
		}
	}
}

// TestAdvertisedNetworks: hosts make addresses of networks of 64 bits alone (RFC 4862, section 5.5.3), and link-local ones are none.
func TestAdvertisedNetworks(t *testing.T) {
	c := newLab(t, nil).i10.Config()
	c.Addresses = []netip.Prefix{netip.MustParsePrefix("fd00:56::fe/56"), netip.MustParsePrefix("fe80::fe/64"), netip.MustParsePrefix("fd00:64::fe/64"), netip.MustParsePrefix("fd00::fe/128")}
	c.RouterAdvertisements = &RouterAdvertisements{}
	l := newLab(t, nil)
	l.injected = []injected{{f: frame.Make((&Interface{cfg: c}).advertisement(false))}}
	var got []string
	for _, p := range l.advert(l.injected[0]).opts[layers.ICMPv6OptPrefixInfo] {
		got = append(got, fmt.Sprintf("%v/%d %#x", netip.AddrFrom16([16]byte(p[14:])), p[0], p[1]))
	}
	check.True(t, slices.Equal(got, []string{"fd00:56::/56 0x80", "fd00:64::/64 0xc0"}), "%v", got)
}

func TestAdvertisementsRefused(t *testing.T) {
	l := newLab(t, nil)
	good := l.i10.Config()
	for want, change := range map[string]func(c *InterfaceConfig){
		"RouterAdvertisements: requires an IPv6 network":                     func(c *InterfaceConfig) { c.Addresses = c.Addresses[:1] },
		"RouterAdvertisements.Interval: 3s: must be 4s to 30m0s":             func(c *InterfaceConfig) { c.RouterAdvertisements.Interval = 3 * time.Second },
		"RouterAdvertisements.Lifetime: 1m0s: must be 10m0s to 2h30m0s":      func(c *InterfaceConfig) { c.RouterAdvertisements.Lifetime = time.Minute },
		"RouterAdvertisements.Lifetime: 9m59.999999999s: must be 10m0s":      func(c *InterfaceConfig) { c.RouterAdvertisements.Lifetime = 10*time.Minute - 1 },
		"RouterAdvertisements.MTU: 1279: must be 1280 to 65535":              func(c *InterfaceConfig) { c.RouterAdvertisements.MTU = 1279 },
		"RouterAdvertisements.DNS[0]: 10.0.0.1: must be the IPv6 address of": func(c *InterfaceConfig) { c.RouterAdvertisements.DNS = []netip.Addr{netip.MustParseAddr("10.0.0.1")} },
		"RouterAdvertisements: an IP port has no hosts": func(c *InterfaceConfig) {
			*c = InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: c.Send, RouterAdvertisements: c.RouterAdvertisements}
		},
	} {
		c := good
		c.VNI, c.RouterAdvertisements = 77, &RouterAdvertisements{}
		change(&c)
		check.ErrorHas(t, c.Check(), "InterfaceConfig."+want)
	}
}
