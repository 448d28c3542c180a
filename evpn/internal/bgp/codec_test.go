package bgp

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// said keeps what a sink is told.
type said struct {
	routes []route.Route
	gone   []route.Key
	ends   int
	left   []string
}

func (s *said) learned(r *route.Route)  { s.routes = append(s.routes, *r) }
func (s *said) withdrawn(k *route.Key)  { s.gone = append(s.gone, *k) }
func (s *said) ended()                  { s.ends++ }
func (s *said) malformed(reason string) { s.left = append(s.left, reason) }

func ip(s string) route.Addr { return route.AddrFrom(netip.MustParseAddr(s)) }

var (
	internal = agreement{as: 65000, peerAS: 65000, id: [4]byte{192, 0, 2, 1}, as4: true, extended: true}
	rd       = route.RDFrom(netip.MustParseAddr("192.0.2.2"), 7)
	rt       = route.Communities("\x00\x02\xfd\xe8\x00\x00\x00\x64\x03\x0c\x00\x00\x00\x00\x00\x08")
)

// samples is a route of every kind and form.
func samples() []route.Route {
	nh := ip("192.0.2.2")
	esi := route.ESI{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	mac := frame.MAC{2, 0, 0, 0, 0, 1}
	r := []route.Route{
		{Key: route.Key{Kind: route.AutoDiscovery, RD: rd, Tag: 0xffffffff, Segment: esi}, NumLabels: 1},
		{Key: route.Key{Kind: route.AutoDiscovery, RD: rd, Segment: esi}, Labels: [2]uint32{100}, NumLabels: 1},
		{Key: route.Key{Kind: route.MACIP, RD: rd, MAC: mac}, Labels: [2]uint32{100}, NumLabels: 1},
		{Key: route.Key{Kind: route.MACIP, RD: rd, MAC: mac, IP: ip("10.0.0.1"), Tag: 5}, Labels: [2]uint32{100, 0xffffff}, NumLabels: 2, ESI: esi},
		{Key: route.Key{Kind: route.MACIP, RD: rd, MAC: mac, IP: ip("2001:db8::1")}, Labels: [2]uint32{100}, NumLabels: 1},
		{Key: route.Key{Kind: route.Multicast, RD: rd, IP: nh}, Labels: [2]uint32{100}, NumLabels: 1, Tunnel: nh, TunnelType: tunnelIngress},
		{Key: route.Key{Kind: route.Segment, RD: rd, Segment: esi, IP: nh}},
		{Key: route.Key{Kind: route.Segment, RD: rd, Segment: esi, IP: ip("2001:db8::1")}},
		{Key: route.Key{Kind: route.Prefix, RD: rd, IP: ip("10.1.0.0"), Bits: 16}, Labels: [2]uint32{500}, NumLabels: 1},
		{Key: route.Key{Kind: route.Prefix, RD: rd, IP: ip("2001:db8::"), Bits: 32}, Labels: [2]uint32{500}, NumLabels: 1, Gateway: ip("2001:db8::7")},
	}
	for i := range r {
		r[i].NextHop, r[i].Communities = nh, rt
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	external := internal
	external.peerAS, external.as = 65001, 70000
	for _, s := range []agreement{internal, external} {
		for i, r := range samples() {
			sh := sharedOf(&r)
			var got said
			d := decoder{agreement: agreement{as: s.peerAS, peerAS: s.as, id: [4]byte{192, 0, 2, 9}, as4: true}}
			if err := d.update(s.reach(&sh, appendNLRI(nil, &r))[headerLen:], &got); err != nil || len(got.left) > 0 || !slices.Equal(got.routes, []route.Route{r}) {
				t.Errorf("%d: %v, %+v\nwant %+v", i, err, got, r)
			}
			got = said{}
			if err := d.update(unreach(appendNLRI(nil, &r))[headerLen:], &got); err != nil || len(got.left) > 0 || !slices.Equal(got.gone, []route.Key{r.Key}) {
				t.Errorf("%d: withdrawn: %v, %+v", i, err, got)
			}
		}
	}
	var got said
	d := decoder{agreement: internal}
	if err := d.update(unreach(nil)[headerLen:], &got); err != nil || got.ends != 1 {
		t.Errorf("end of RIB: %v, %+v", err, got)
	}
}

// attr returns one attribute.
func attr(flags, typ uint8, v ...byte) []byte { return appendAttr(nil, flags, typ, v...) }

// nlri returns one route of any content.
func nlri(kind uint8, parts ...[]byte) []byte {
	v := slices.Concat(parts...)
	return append([]byte{kind, byte(len(v))}, v...)
}

// reachOf returns MP_REACH_NLRI with the next hop 192.0.2.2.
func reachOf(nlri ...[]byte) []byte {
	return attr(flagOptional, attrReach, append([]byte{0, afi, safi, 4, 192, 0, 2, 2, 0}, slices.Concat(nlri...)...)...)
}

func body(attrs ...[]byte) []byte {
	a := slices.Concat(attrs...)
	return append(binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(a))), a...)
}
