package node

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/bfd/vxlan"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
)

func (k *checker) tunnel(key string, t *Tunnel) {
	k.named(key+".name", t.Name, k.tunnels[t.Name] == t)
	switch {
	case !t.Local.IsValid():
		k.Fail(key+".local", nil, "an address of this host is required")
	case t.Local.Is4In6():
		k.Want(key+".local", t.Local, "%v", t.Local.Unmap())
	default:
		k.local(key+".local", t, t.Local)
	}
	switch {
	case !t.Local6.IsValid():
	case t.Local.IsValid() && !t.Local.Is4() || !t.Local6.Is6() || t.Local6.Is4In6():
		k.Want(key+".local6", t.Local6, "an IPv6 address beside an IPv4 local")
	default:
		k.local(key+".local6", t, t.Local6)
	}
	if p := k.ports[t.Device]; p != nil && p.Type == PortInterface && p.Namespace == "" {
		k.Fail(key+".bind", t.Device, "is a port of type interface, which takes all that it receives")
	}
	k.Ask(key, *t, t.Config.Check)
	shared := k.shared(t)
	for _, a := range t.locals() {
		if t.MTU != 0 && !k.Failed(key+".type") {
			k.Ask(key, *t, func() error { return t.CheckMTU(t.MTU, cmp.Or(a, netip.IPv4Unspecified())) })
		}
		var at any = *t
		if a != t.Local {
			at = second{}
		}
		k.underlay(key, shared.on(a), at)
	}
	k.sharedAddress(key, t)
	if !t.Local6.IsValid() && t.Prefix6.IsValid() {
		k.Fail(key+".prefix6", nil, "requires local6")
	}
	if !t.Local6.IsValid() && t.Gateway6.IsValid() {
		k.Fail(key+".gateway6", nil, "requires local6")
	}
	k.peerSettings(key, t)
	if t.BFD != nil {
		k.tunnelBFD(key+".bfd", t)
	}
}

func (k *checker) tunnelBFD(key string, t *Tunnel) {
	k.Ask(key, *t.BFD, t.BFD.Check)
	vni := t.BFD.vni()
	switch {
	case t.Type.Bare():
		if t.BFD.VNI != 0 {
			k.Fail(key+".vni", nil, "an IP tunnel has none")
		}
		if g, _ := k.sharing(t, t.Local); g == nil && t.Underlay == UnderlayPacket {
			k.Fail(key, nil, "over packet sockets, it requires a gateway with the address of the tunnel")
		}
	case !vni.Valid():
		k.Want(key+".vni", t.BFD.VNI, "1 to %d, or 0 for %d", frame.MaxVNI, vxlan.VNI)
	case k.segments[vni] != nil:
		k.Fail(key+".vni", vni, "is that of a segment")
	}
	for _, g := range k.segments {
		for _, x := range g.in() {
			if x.Tunnel == t.Name && x.VNI == vni && !t.Type.Bare() {
				k.Fail(key+".vni", vni, "is that of segment %d in the tunnel", g.VNI)
			}
		}
	}
}

// second has the keys of a Tunnel for Local6.
type second struct {
	Prefix  netip.Prefix `json:"prefix6"`
	Gateway netip.Addr   `json:"gateway6"`
	Tunnel
}

// local checks a local address, which no other tunnel may have.
func (k *checker) local(key string, t *Tunnel, a netip.Addr) {
	switch {
	case hostaddr.Check(a) != nil:
		k.Fail(key, a, "%v", hostaddr.Check(a))
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		k.Fail(key, a, "requires a zone, such as %v%%eth0", a)
	default:
		what := fmt.Sprintf("%v port %d", a, t.port())
		if other := k.claim(what, t.Name); other != "" {
			k.Fail(key, nil, "tunnel %q already has %s", other, what)
		}
	}
}

// underlay checks the settings of a tunnel's sockets on one of its addresses. The keys are those of at.
func (k *checker) underlay(key string, t *Tunnel, at any) {
	kind, is := t.Underlay.String(), any(t.UDPConfig)
	check := func() error { return t.UDPConfig.Check(t.AddrPort()) }
	switch {
	case t.Underlay > UnderlayPacket:
		k.Want(key+".underlay", uint8(t.Underlay), "%s", setting.Or(underlayWords...))
		return
	case t.Underlay == UnderlayPacket:
		cfg := convert[afpacket.Config](t)
		is, check = *cfg, func() error { return cfg.Check(t.AddrPort()) }
	case t.Type == encap.TypeIPIP:
		cfg := convert[underlay.IPConfig](t)
		kind, is, check = t.Type.String(), *cfg, func() error { return cfg.Check(t.Local) }
	}
	if t.Type.Bare() && t.GroupTTL != 0 {
		k.Fail(key+".groupTTL", nil, "an IP tunnel has no groups")
	}
	if t.Type == encap.TypeFOU && t.Port == 0 {
		k.Fail(key+".port", nil, "required: IP in UDP has no port of its own")
	} else if t.Own != nil && t.Port == 0 { // not that of VXLAN
		k.Fail(key+".port", nil, "required: the encapsulation is the program's own")
	}
	others := []any{t.UDPConfig, struct{ Prefix, Gateway, MAC, VLAN int }{}}
	k.misplaced(key, at, *t, is, others, "an underlay of type "+kind+" does not have this setting")
	k.Ask(key, at, check)
}

// peerSettings checks the settings of single peers.
func (k *checker) peerSettings(key string, t *Tunnel) {
	seen, sets := map[netip.Addr]bool{}, map[underlay.TxConfig]bool{}
	each(k.Report, key+".peerSettings", t.PeerSettings, func(at string, p *PeerSetting) {
		k.Ask(at, *p, p.Check)
		k.remote(at+".address", t, p.Address)
		once(k, at+".address", seen, t.zoned(p.Address))
		if t.Type == encap.TypeIPIP {
			others := []any{underlay.TxConfig{}, struct{ Port int }{}}
			k.misplaced(at, *p, *p, struct{}{}, others, "IP-in-IP has no UDP header")
		}
		if p.TxConfig != (underlay.TxConfig{}) {
			sets[p.TxConfig] = true
		}
		if len(sets) >= underlay.MaxSets {
			k.Fail(at, nil, "at most %d different pairs of srcPorts and udpChecksum are allowed", underlay.MaxSets-1)
		}
	})
}

// port returns the UDP port of a tunnel.
func (t *Tunnel) port() uint16 {
	if t.Type == encap.TypeIPIP {
		return 0
	}
	return cmp.Or(t.Port, t.Type.Port())
}

// remote checks the address of a peer of a tunnel.
func (k *checker) remote(key string, t *Tunnel, a netip.Addr) {
	if !a.IsValid() {
		k.Fail(key, nil, "an address is required")
	}
	if !a.IsValid() || t == nil {
		return
	}
	switch own := t.beside(a); {
	case a == own:
		k.Fail(key, a, "is this node's own address")
	case hostaddr.Check(a) != nil:
		k.Fail(key, a, "%v", hostaddr.Check(a))
	case a.IsLoopback() && own.IsValid() && !own.IsLoopback():
		k.Fail(key, a, "must not be a loopback address, because %v, the local address of tunnel %q, is none", own, t.Name)
	case t.Local.IsValid() && !own.IsValid():
		k.Fail(key, a, "is of another address family than %v, the local address of tunnel %q", t.Local, t.Name)
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "" && own.Zone() == "":
		k.Fail(key, a, "requires a zone, such as %v%%eth0", a)
	case own.Zone() != "" && a.Zone() != "" && a.Zone() != own.Zone():
		k.Fail(key, a, "has another zone than %v, the local address of tunnel %q", own, t.Name)
	}
}

// flooded checks an entry of a flood list: a peer, or a multicast group.
func (k *checker) flooded(key string, t *Tunnel, a netip.Addr) {
	switch {
	case !a.IsMulticast() || t == nil || t.Type.Bare():
		k.remote(key, t, a)
	case a.Zone() != "":
		k.Fail(key, a, "a multicast group has no zone; set multicastDevice of the tunnel")
	case t.Local.IsValid() && !t.beside(a).IsValid():
		k.Fail(key, a, "is of another address family than %v, the local address of tunnel %q", t.Local, t.Name)
	case t.VLAN != 0:
		k.Fail(key, a, "tunnel %q has a vlan, in which there are no multicast groups; must be the address of a peer", t.Name)
	}
}
