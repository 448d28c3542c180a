package table

import (
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A configured host is one that the configuration, or another control plane, has on a port of a segment: its addresses, none too, and how
// often it has each.
type configured map[address]int

// Configured says that the configuration has a host on a port once more (1), or once less (-1). The host never moves. ip may be none.
func (t *Table) Configured(now time.Duration, vni frame.VNI, mac frame.MAC, ip netip.Addr, router bool, by int) {
	hosts := t.configured[vni]
	if hosts == nil {
		hosts = map[frame.MAC]configured{}
		t.configured[vni] = hosts
	}
	if hosts[mac] == nil {
		hosts[mac] = configured{}
	}
	a := address{ip: route.AddrFrom(ip), router: router}
	if hosts[mac][a] += by; hosts[mac][a] == 0 {
		delete(hosts[mac], a)
	}
	if len(hosts[mac]) == 0 {
		delete(hosts, mac)
	}
	if s := t.segments[vni]; s != nil {
		t.configure(now, s, mac)
	}
}

// configure has a host be as it is configured.
func (t *Table) configure(now time.Duration, s *segment, mac frame.MAC) {
	h, is := s.host(mac), t.configured[s.VNI][mac]
	h.fixed = nil
	for a := range is {
		if a.ip.Bits() != 0 {
			h.fixed = append(h.fixed, a)
		}
	}
	switch {
	case is != nil:
		t.Here(now, s.VNI, mac, 0, true)
	case h.static:
		t.gone(now, h)
	}
	t.touch(h)
}

// local counts the routes that we have to a prefix.
type local struct{ connected, static int }

// Connected says that we have one more gateway in a network of a VRF (1), or one less (-1).
func (t *Table) Connected(vrf string, p netip.Prefix, by int) {
	t.addLocal(vrf, p, local{connected: by})
}

// Static says that the configuration, or another control plane, has one more route to a prefix of a VRF (1), or one less (-1).
func (t *Table) Static(vrf string, p netip.Prefix, by int) { t.addLocal(vrf, p, local{static: by}) }

func (t *Table) addLocal(name string, p netip.Prefix, by local) {
	if !p.IsValid() || p.Addr().IsLinkLocalUnicast() || p.Addr().IsLoopback() || p.Addr().IsMulticast() {
		return
	}
	p = p.Masked()
	list := t.locals[name]
	if list == nil {
		list = map[netip.Prefix]local{}
		t.locals[name] = list
	}
	n := local{list[p].connected + by.connected, list[p].static + by.static}
	if list[p] = n; n == (local{}) {
		if delete(list, p); len(list) == 0 {
			delete(t.locals, name)
		}
	}
	if v := t.vrfs[name]; v != nil {
		x := v.at(p)
		x.local = n
		t.touch(x)
	}
}
