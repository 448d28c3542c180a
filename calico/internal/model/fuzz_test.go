package model

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Resources with any of some values, right and wrong ones: what BGP is told is right, and no row leads where the datastore must not lead us.
func FuzzCompile(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 5, 0, 0, 1, 1, 1})
	f.Add([]byte("\x00\x00\x01\x01\x00\x01\x00\x00\x01\x01\x01\x01\x01\x01\x01\x01\x02\x02\x02\x02\x05\x01\x01\x02\x00\x01\x02\x03\x03\x01\x02\x03\x04\x05"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := (*check.Draw)(&b).N
		pick := func(list ...string) string { return list[n(len(list))] }
		node := func() string { return pick("a", "b", "c", "d") }
		ip := func() string {
			return pick("192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.4", "10.65.0.9", "127.0.0.1", "224.0.0.1", "junk", "")
		}
		s, c := new(Store), settings("a")
		c.NoBGP = n(4) == 1
		if n(4) == 1 {
			c.Segment, c.Routers = 0, nil
		}
		var keys []string
		put := func(key, value string) {
			keys = append(keys, key)
			s.Put(key, []byte(value))
		}
		for len(b) > 0 {
			switch n(7) {
			case 0:
				put(resourcesKey+"ippools/"+pick("p", "q", "r"), fmt.Sprintf(`{"spec":{"cidr":%q,"ipipMode":%q,"vxlanMode":%q,"disableBGPExport":%v}}`,
					pick("10.65.0.0/16", "10.65.1.0/24", "10.66.0.0/16", "0.0.0.0/1", "fd65::/48", "192.0.2.0/24"), pick("", "Always", "CrossSubnet"), pick("", "Never", "Always", "CrossSubnet"), n(2) == 1))
			case 1:
				put(resourcesKey+"nodes/"+node(), fmt.Sprintf(`{"metadata":{"labels":{"rack":%q}},"spec":{"bgp":{"ipv4Address":"%s%s","ipv6Address":%q,"asNumber":%s,"routeReflectorClusterID":%q},"ipv4VXLANTunnelAddr":%q,"vxlanTunnelMACAddr":%q}}`,
					pick("1", "2"), ip(), pick("/24", "/32", ""), pick("", "2001:db8::1/64", "2001:db8::2/64"), pick("0", "64513", "1"), pick("", "1.1.1.1"), pick("", "10.65.0.1"), pick("", "02:00:00:00:00:01", "02:00:00:00:00:02")))
			case 2:
				put(resourcesKey+"bgpconfigurations/"+pick("default", "node.a", "node.b"), fmt.Sprintf(`{"spec":{"asNumber":%s,"listenPort":%s,"nodeToNodeMeshEnabled":%v,"programClusterRoutes":%q}}`,
					pick("0", "64513"), pick("0", "1790"), n(2) == 0, pick("", "Enabled", "Disabled", "EnabledIPIPOnly")))
			case 3:
				put(resourcesKey+"bgppeers/"+pick("x", "y", "z"), fmt.Sprintf(`{"spec":{"node":%q,"nodeSelector":%q,"peerIP":"%s%s","peerSelector":%q,"asNumber":%s,"sourceAddress":%q}}`,
					pick("", "a", "b"), pick("", "all()", "rack == '1'"), ip(), pick("", ":1790"), pick("", "rack == '2'", "all()"), pick("0", "64513", "65000"), pick("", "None")))
			case 4, 5:
				p := pick("10.65.0.0/26", "10.65.1.0/26", "10.65.1.0/30", "10.65.1.1/32", "10.66.0.0/26", "127.0.0.0/26", "fd65::/122", "172.16.0.0/26")
				put(blockKey(p), block(p, pick("", "a", "b", "c", "d"), pick("-", "a"), pick("-", "b", "c"), pick("a", "d", "nobody")))
			case 6:
				if len(keys) > 0 {
					s.Delete(keys[n(len(keys))])
				}
			}
		}
		plan := Compile(c, s)
		if plan.BGP != nil {
			if err := plan.BGP.Check(); err != nil {
				t.Fatalf("%v\n%+v", err, plan.BGP)
			}
		}
		seen := map[netip.Prefix]bool{}
		for _, r := range plan.Rows {
			r := r.(control.Prefix)
			if seen[r.Prefix] {
				t.Errorf("two rows for %v", r.Prefix)
			}
			seen[r.Prefix] = true
			sane(t, s, r)
		}
		for _, k := range keys {
			s.Delete(k)
		}
		if plan := Compile(c, s); len(plan.Rows) > 0 || plan.BGP != nil || len(plan.Problems) != 1 {
			t.Errorf("of nothing: %+v", plan)
		}
	})
}

// sane looks at a row.
func sane(t *testing.T, s *Store, r control.Prefix) {
	t.Helper()
	inPool := func(p netip.Prefix) bool {
		for _, x := range All[resource.Pool](s, resource.KindPool) {
			if x.Prefix.Bits() <= p.Bits() && x.Prefix.Contains(p.Addr()) {
				return true
			}
		}
		return false
	}
	if !inPool(r.Prefix) || r.Prefix.Addr().IsLoopback() {
		t.Errorf("%v is in no pool", r)
	}
	if r.Via == (control.Via{}) {
		return // our own block
	}
	to := r.Via.IP
	if r.Via.VTEP.IsValid() {
		to = r.Via.VTEP.Addr()
	}
	own := One[resource.Node](s, resource.KindNode, "a").Of(to.Is4()).Network.Addr()
	if r.Via.VNI == 0 || to == own || to.IsLoopback() || to.IsMulticast() || to.Is4() != r.Prefix.Addr().Is4() {
		t.Errorf("%v leads to %v", r, to)
	}
	if to != addr("10.192.255.254") && inPool(netip.PrefixFrom(to, to.BitLen())) && !slices.ContainsFunc(Compile(settings("a"), s).Problems, func(p Problem) bool { return strings.Contains(p.Why, "is also that of") }) {
		t.Errorf("%v leads into a pool", r)
	}
}
