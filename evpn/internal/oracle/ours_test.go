package oracle

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// ours returns a sample as our speaker has it.
func (x sample) ours() (r route.Route) {
	r.Key = route.Key{Kind: x.kind, Bits: uint8(x.bits), RD: x.rd.bytes(), Tag: x.tag, MAC: x.mac, IP: route.AddrFrom(x.ip)}
	if x.kind == route.AutoDiscovery || x.kind == route.Segment {
		r.Segment = x.esi
	} else {
		r.ESI = x.esi
	}
	r.NumLabels = uint8(copy(r.Labels[:], x.labels))
	r.NextHop, r.Gateway = route.AddrFrom(x.hop), route.AddrFrom(x.gateway)
	if x.kind == route.Multicast {
		r.Labels[0], r.NumLabels = x.tunnel.label, 1
		r.Tunnel, r.TunnelType, r.TunnelFlags = route.AddrFrom(x.tunnel.end), x.tunnel.typ, x.tunnel.flags
	}
	var list []route.Community
	for _, c := range x.communities {
		list = append(list, c.ours())
	}
	r.Communities = route.Join(list...)
	return r
}

func (c community) ours() route.Community {
	switch c.name {
	case "target-2":
		t, err := route.TargetFrom(uint32(c.a), uint32(c.b))
		if err != nil {
			panic(err)
		}
		return route.Community(t)
	case "target-4": // by its bytes: TargetFrom makes the shorter form of an AS below 65536
		b := pair{2, uint32(c.a), uint32(c.b)}.bytes()
		return route.Community{2, 2, b[2], b[3], b[4], b[5], b[6], b[7]}
	case "target-1":
		t, err := route.ParseTarget(pair{1, uint32(c.a), uint32(c.b)}.String())
		if err != nil {
			panic(err)
		}
		return route.Community(t)
	case "encapsulation":
		return route.Encapsulation(uint16(c.a))
	case "gateway":
		return route.DefaultGateway()
	case "mobility":
		return route.Mobility(uint32(c.a), c.b != 0)
	case "router-mac":
		return route.RouterMAC(mac48(c.a))
	case "esi-label":
		return route.ESILabel(c.a != 0)
	case "es-import":
		return route.ESImport(esiOf(c.a))
	case "nd":
		return route.NDFlags(c.a&1 != 0, c.a&2 != 0)
	case "election":
		return route.Election{Algorithm: uint8(c.a), Capabilities: uint16(c.b >> 16), Preference: uint16(c.b)}.Community()
	}
	panic(c.name)
}

// esiOf returns an Ethernet segment whose route target is n.
func esiOf(n uint64) (e route.ESI) {
	m := mac48(n)
	copy(e[1:], m[:])
	return e
}

// read asks our communities for everything, and compares it with what a sample has.
func (x sample) read(t *testing.T, got route.Communities) {
	t.Helper()
	var targets, wantTargets []string
	for tg := range got.Targets() {
		targets = append(targets, tg.String())
	}
	var sequence, flags uint32
	var sticky, gateway, single, labelled, hasMAC bool
	var mac frame.MAC
	var election route.Election
	encapsulated, said := false, false
	for _, c := range x.communities {
		switch c.name {
		case "target-2":
			wantTargets = append(wantTargets, pair{0, uint32(c.a), uint32(c.b)}.String())
		case "target-1":
			wantTargets = append(wantTargets, pair{1, uint32(c.a), uint32(c.b)}.String())
		case "target-4":
			wantTargets = append(wantTargets, pair{2, uint32(c.a), uint32(c.b)}.String())
		case "encapsulation":
			encapsulated, said = c.a == route.VXLAN, true
		case "gateway":
			gateway = true
		case "mobility":
			sequence, sticky = uint32(c.a), c.b != 0
		case "router-mac":
			mac, hasMAC = mac48(c.a), true
		case "esi-label":
			single, labelled = c.a != 0, true
		case "es-import":
			if !got.ESImports(esiOf(c.a)) {
				t.Errorf("%+v: does not import its Ethernet segment", x)
			}
		case "nd":
			flags = uint32(c.a)
		case "election":
			election = route.Election{Algorithm: uint8(c.a), Capabilities: uint16(c.b >> 16), Preference: uint16(c.b)}
		}
	}
	type all struct {
		sequence                                                        uint32
		sticky, gateway, single, labelled, hasMAC, router, override, vx bool
		mac                                                             frame.MAC
		election                                                        route.Election
	}
	want := all{sequence, sticky, gateway, single, labelled, hasMAC, flags&1 != 0, flags&2 != 0, encapsulated || !said, mac, election}
	var is all
	is.sequence, is.sticky = got.Mobility()
	is.gateway, is.vx, is.election = got.DefaultGateway(), got.Encapsulated(), got.Election()
	is.single, is.labelled = got.ESILabel()
	is.mac, is.hasMAC = got.RouterMAC()
	is.router, is.override = got.NDFlags()
	if is != want || !slices.Equal(targets, wantTargets) {
		t.Errorf("%v %+v, want %v %+v", targets, is, wantTargets, want)
	}
}

// length returns that of a message.
func length(b []byte) int { return int(binary.BigEndian.Uint16(b[16:])) }
