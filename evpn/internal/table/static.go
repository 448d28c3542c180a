package table

import (
	"iter"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A configured host is one that the configuration, or another control plane, has on a port of a segment: how often it has each of its
// addresses, none too, and its port.
type configured struct {
	addrs map[address]int
	ports map[string]int
}

// port returns that of a configured host, of several the first by name, "" if none has it.
func (h *host) port(t *Table) (first string) {
	for p := range t.configured[h.s.VNI][h.mac].ports {
		if first == "" || p < first {
			first = p
		}
	}
	return first
}

// Configured says that the configuration has a host on a port once more (1), or once less (-1). The host never moves. ip may be none.
func (t *Table) Configured(now time.Duration, vni frame.VNI, mac frame.MAC, ip netip.Addr, port string, router bool, by int) {
	hosts := t.configured[vni]
	if hosts == nil {
		hosts = map[frame.MAC]configured{}
		t.configured[vni] = hosts
	}
	is := hosts[mac]
	if is.addrs == nil {
		is = configured{map[address]int{}, map[string]int{}}
		hosts[mac] = is
	}
	a := address{ip: route.AddrFrom(ip), router: router}
	if is.addrs[a] += by; is.addrs[a] == 0 {
		delete(is.addrs, a)
	}
	if is.ports[port] += by; is.ports[port] == 0 {
		delete(is.ports, port)
	}
	if len(is.addrs) == 0 {
		delete(hosts, mac)
	}
	if s := t.segments[vni]; s != nil {
		t.configure(now, s, mac)
	}
}

// configure has a host be as it is configured.
func (t *Table) configure(now time.Duration, s *segment, mac frame.MAC) {
	h := s.host(mac)
	is, ok := t.configured[s.VNI][mac]
	h.fixed = nil
	for a := range is.addrs {
		if a.ip.Bits() != 0 {
			h.fixed = append(h.fixed, a)
		}
	}
	switch {
	case ok:
		t.Here(now, s.VNI, mac, 0, true)
		h.contest(t, now) // it may have left an Ethernet segment
	case h.static:
		t.gone(now, h)
	}
	t.touch(h)
}

// configuredAt iterates over the hosts that are configured on a port, in no order.
func (t *Table) configuredAt(port string) iter.Seq[*host] {
	return func(yield func(*host) bool) {
		for vni, hosts := range t.configured {
			for mac := range hosts {
				if s := t.segments[vni]; s != nil && s.hosts[mac] != nil && s.hosts[mac].static && s.hosts[mac].port(t) == port && !yield(s.hosts[mac]) {
					return
				}
			}
		}
	}
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
