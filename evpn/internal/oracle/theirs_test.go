package oracle

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func (p pair) theirs(t *testing.T) bgp.RouteDistinguisherInterface {
	switch p.typ {
	case 0:
		return bgp.NewRouteDistinguisherTwoOctetAS(uint16(p.admin), p.n)
	case 1:
		return check.Must(bgp.NewRouteDistinguisherIPAddressAS(ip4(p.admin), uint16(p.n)))(t)
	}
	return bgp.NewRouteDistinguisherFourOctetAS(p.admin, uint16(p.n))
}

// nlri returns a sample's route as gobgp has it.
func (x sample) nlri(t *testing.T) bgp.NLRI {
	rd := x.rd.theirs(t)
	esi := bgp.EthernetSegmentIdentifier{Type: bgp.ESIType(x.esi[0]), Value: x.esi[1:]}
	switch x.kind {
	case route.AutoDiscovery:
		return bgp.NewEVPNEthernetAutoDiscoveryRoute(rd, esi, x.tag, x.labels[0])
	case route.MACIP:
		return check.Must(bgp.NewEVPNMacIPAdvertisementRoute(rd, esi, x.tag, mac48(uint48(x.mac[:])).String(), x.ip, x.labels))(t)
	case route.Multicast:
		return check.Must(bgp.NewEVPNMulticastEthernetTagRoute(rd, x.tag, x.ip))(t)
	case route.Segment:
		return check.Must(bgp.NewEVPNEthernetSegmentRoute(rd, esi, x.ip))(t)
	}
	gateway := x.gateway
	if !gateway.IsValid() {
		gateway = zero(x.ip)
	}
	return check.Must(bgp.NewEVPNIPPrefixRoute(rd, esi, x.tag, uint8(x.bits), x.ip, gateway, x.labels[0]))(t)
}

// zero returns the unspecified address of a's family: gobgp has it for no gateway.
func zero(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func uint48(b []byte) uint64 { return binary.BigEndian.Uint64(append([]byte{0, 0}, b...)) }

// attributes returns all attributes of a sample's UPDATE but AS_PATH and LOCAL_PREF, as gobgp has them.
func (x sample) attributes(t *testing.T) []bgp.PathAttributeInterface {
	list := []bgp.PathAttributeInterface{
		check.Must(bgp.NewPathAttributeMpReachNLRI(bgp.RF_EVPN, []bgp.PathNLRI{{NLRI: x.nlri(t)}}, x.hop))(t),
		bgp.NewPathAttributeOrigin(0),
	}
	var all []bgp.ExtendedCommunityInterface
	for _, c := range x.communities {
		all = append(all, c.theirs(t))
	}
	list = append(list, bgp.NewPathAttributeExtendedCommunities(all))
	if x.kind == route.Multicast {
		var end bgp.PmsiTunnelIDInterface = bgp.NewDefaultPmsiTunnelID(x.tunnel.end.AsSlice())
		if x.tunnel.typ == 6 {
			end = check.Must(bgp.NewIngressReplTunnelID(x.tunnel.end))(t)
		}
		list = append(list, bgp.NewPathAttributePmsiTunnel(bgp.PmsiTunnelType(x.tunnel.typ), x.tunnel.flags&1 != 0, x.tunnel.label, end))
	}
	return list
}

func (c community) theirs(t *testing.T) bgp.ExtendedCommunityInterface {
	switch c.name {
	case "target-2":
		return bgp.NewTwoOctetAsSpecificExtended(bgp.EC_SUBTYPE_ROUTE_TARGET, uint16(c.a), uint32(c.b), true)
	case "target-1":
		return check.Must(bgp.NewIPv4AddressSpecificExtended(bgp.EC_SUBTYPE_ROUTE_TARGET, ip4(uint32(c.a)), uint16(c.b), true))(t)
	case "target-4":
		return bgp.NewFourOctetAsSpecificExtended(bgp.EC_SUBTYPE_ROUTE_TARGET, uint32(c.a), uint16(c.b), true)
	case "encapsulation":
		return bgp.NewEncapExtended(bgp.TunnelType(c.a))
	case "gateway":
		return bgp.NewDefaultGatewayExtended()
	case "mobility":
		return bgp.NewMacMobilityExtended(uint32(c.a), c.b != 0)
	case "router-mac":
		return bgp.NewRoutersMacExtended(mac48(c.a).String())
	case "esi-label":
		return bgp.NewESILabelExtended(0, c.a != 0)
	case "es-import":
		return bgp.NewESImportRouteTarget(mac48(c.a).String())
	}
	t.Fatal(c.name)
	return nil
}

// sampleOf reads a route of gobgp's.
func sampleOf(t *testing.T, n bgp.NLRI) (x sample) {
	t.Helper()
	switch r := n.(*bgp.EVPNNLRI).RouteTypeData.(type) {
	case *bgp.EVPNEthernetAutoDiscoveryRoute:
		x = sample{kind: route.AutoDiscovery, rd: pairOf(t, r.RD), esi: esiOfTheirs(r.ESI), tag: r.ETag, labels: []uint32{r.Label}}
	case *bgp.EVPNMacIPAdvertisementRoute:
		x = sample{kind: route.MACIP, rd: pairOf(t, r.RD), esi: esiOfTheirs(r.ESI), tag: r.ETag, mac: [6]byte(r.MacAddress), ip: r.IPAddress, labels: r.Labels}
	case *bgp.EVPNMulticastEthernetTagRoute:
		x = sample{kind: route.Multicast, rd: pairOf(t, r.RD), tag: r.ETag, ip: r.IPAddress}
	case *bgp.EVPNEthernetSegmentRoute:
		x = sample{kind: route.Segment, rd: pairOf(t, r.RD), esi: esiOfTheirs(r.ESI), ip: r.IPAddress}
	case *bgp.EVPNIPPrefixRoute:
		x = sample{kind: route.Prefix, rd: pairOf(t, r.RD), esi: esiOfTheirs(r.ESI), tag: r.ETag, ip: r.IPPrefix, bits: int(r.IPPrefixLength), labels: []uint32{r.Label}}
		if !r.GWIPAddress.IsUnspecified() {
			x.gateway = r.GWIPAddress
		}
	default:
		t.Fatalf("%T", r)
	}
	return x
}

func esiOfTheirs(e bgp.EthernetSegmentIdentifier) (b [10]byte) {
	b[0] = byte(e.Type)
	copy(b[1:], e.Value)
	return b
}

func pairOf(t *testing.T, d bgp.RouteDistinguisherInterface) pair {
	t.Helper()
	switch d := d.(type) {
	case *bgp.RouteDistinguisherTwoOctetAS:
		return pair{0, uint32(d.Admin), d.Assigned}
	case *bgp.RouteDistinguisherIPAddressAS:
		a := d.Admin.As4()
		return pair{1, binary.BigEndian.Uint32(a[:]), uint32(d.Assigned)}
	case *bgp.RouteDistinguisherFourOctetAS:
		return pair{2, d.Admin, uint32(d.Assigned)}
	}
	t.Fatalf("%T", d)
	return pair{}
}

func communityOf(t *testing.T, c bgp.ExtendedCommunityInterface) community {
	t.Helper()
	bit := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	if typ, sub := c.GetTypes(); typ <= 2 && sub != bgp.EC_SUBTYPE_ROUTE_TARGET {
		t.Fatalf("%v: %d/%d", c, typ, sub)
	}
	switch c := c.(type) {
	case *bgp.TwoOctetAsSpecificExtended:
		return community{"target-2", uint64(c.AS), uint64(c.LocalAdmin)}
	case *bgp.IPv4AddressSpecificExtended:
		a := c.IPv4.As4()
		return community{"target-1", uint64(binary.BigEndian.Uint32(a[:])), uint64(c.LocalAdmin)}
	case *bgp.FourOctetAsSpecificExtended:
		return community{"target-4", uint64(c.AS), uint64(c.LocalAdmin)}
	case *bgp.EncapExtended:
		return community{"encapsulation", uint64(c.TunnelType), 0}
	case *bgp.DefaultGatewayExtended:
		return community{"gateway", 0, 0}
	case *bgp.MacMobilityExtended:
		return community{"mobility", uint64(c.Sequence), bit(c.IsSticky)}
	case *bgp.RouterMacExtended:
		return community{"router-mac", uint48(c.Mac), 0}
	case *bgp.ESILabelExtended:
		if c.Label != 0 {
			t.Errorf("label %d of an Ethernet segment, want 0", c.Label)
		}
		return community{"esi-label", bit(c.IsSingleActive), 0}
	case *bgp.ESImportRouteTarget:
		return community{"es-import", uint48(c.ESImport), 0}
	}
	t.Fatalf("%T: %v", c, c)
	return community{}
}

// An update is what gobgp reads in an UPDATE of ours.
type update struct {
	routes []sample // with everything that they have in common
	gone   []sample
	path   string
	pref   int // LOCAL_PREF, -1: none
	ended  bool
}

func updateOf(t *testing.T, m *bgp.BGPUpdate) (u update) {
	t.Helper()
	if len(m.NLRI)+len(m.WithdrawnRoutes) > 0 {
		t.Errorf("IPv4 routes: %v, %v", m.NLRI, m.WithdrawnRoutes)
	}
	u.pref = -1
	origin, hop, end := uint8(255), netip.Addr{}, tunnel{}
	var all []community
	for _, a := range m.PathAttributes {
		switch a := a.(type) {
		case *bgp.PathAttributeMpReachNLRI:
			hop = a.Nexthop
			for _, p := range a.Value {
				u.routes = append(u.routes, sampleOf(t, p.NLRI))
			}
		case *bgp.PathAttributeMpUnreachNLRI:
			u.ended = len(a.Value) == 0
			for _, p := range a.Value {
				u.gone = append(u.gone, sampleOf(t, p.NLRI))
			}
		case *bgp.PathAttributeOrigin:
			origin = a.Value
		case *bgp.PathAttributeAsPath:
			for _, p := range a.Value {
				u.path += p.String() + ";"
			}
		case *bgp.PathAttributeAs4Path:
			for _, p := range a.Value {
				u.path += fmt.Sprint(p.AS) + ";"
			}
		case *bgp.PathAttributeLocalPref:
			u.pref = int(a.Value)
		case *bgp.PathAttributeExtendedCommunities:
			for _, c := range a.Value {
				all = append(all, communityOf(t, c))
			}
		case *bgp.PathAttributePmsiTunnel:
			end = tunnel{typ: uint8(a.TunnelType), label: a.Label}
			if a.IsLeafInfoRequired {
				end.flags = 1
			}
			switch id := a.TunnelID.(type) {
			case *bgp.IngressReplTunnelID:
				end.end = id.Value
			case *bgp.DefaultPmsiTunnelID:
				end.end, _ = netip.AddrFromSlice(id.Value)
			}
		default:
			t.Errorf("attribute %v", a)
		}
	}
	if len(u.routes) > 0 && origin != 0 {
		t.Errorf("origin %d, want 0 (IGP)", origin)
	}
	for i := range u.routes {
		u.routes[i].hop, u.routes[i].communities, u.routes[i].tunnel = hop, all, end
	}
	return u
}
