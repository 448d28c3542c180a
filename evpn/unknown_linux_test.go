package evpn

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
)

// nlri returns a route of a type: the RD 198.51.100.3:7, and what follows it.
func nlri(typ byte, parts ...string) []byte {
	b := "\x00\x01\xc6\x33\x64\x03\x00\x07"
	for _, p := range parts {
		b += p
	}
	return append([]byte{typ, byte(len(b))}, b...)
}

const (
	esi   = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09"
	noESI = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	tag   = "\x00\x00\x00\x00"
	vtep3 = "\x20\xc6\x33\x64\x03" // 198.51.100.3/32
	group = "\x20\x00\x00\x00\x00\x20\xef\x01\x01\x01"
	vni   = "\x00\x00\x64"
)

// strange are routes that we do not use: types 6 to 8 of RFC 9251, 9 to 11 of RFC 9572, and one that nobody has defined.
var strange = map[string][]byte{
	"type-6":     nlri(6, tag, group, vtep3, "\x04"),
	"type-7":     nlri(7, esi, tag, group, vtep3, "\x04"),
	"type-8":     nlri(8, esi, tag, group, vtep3, "\x00\x00\x00\x01\x0a\x04"),
	"type-9":     nlri(9, tag, "\x00\x02\xfd\xe8\x00\x00\x00\x01"),
	"type-10":    nlri(10, tag, group, vtep3),
	"type-11":    nlri(11, tag, vtep3, vtep3),
	"type-other": nlri(200, "\x01\x02\x03"),
}

// hostRoute returns a MAC/IP advertisement of 02:00:00:00:06:n with an IPv6 address 2001:db8:16::60n.
func hostRoute(n byte) []byte {
	return nlri(2, noESI, tag, "\x30\x02\x00\x00\x00\x06", string(n), "\x80\x20\x01\x0d\xb8\x00\x16\x00\x00\x00\x00\x00\x00\x00\x00\x06", string(n), vni)
}

// usual are the communities 65000:100 and VXLAN; unknown are some that nobody has defined, or that we do not use: an EVPN one, that
// of the designated forwarder's election, an opaque one, one of a type without a name; and that of an IPv6 router.
const (
	usual   = "\x00\x02\xfd\xe8\x00\x00\x00\x64\x03\x0c\x00\x00\x00\x00\x00\x08"
	unknown = "\x06\x7f\x01\x02\x03\x04\x05\x06\x06\x06\x01\x02\x00\x00\x00\x00\x03\x7f\x01\x02\x03\x04\x05\x06" +
		"\x3e\x7f\x01\x02\x03\x04\x05\x06\x06\x08\x01\x00\x00\x00\x00\x00"
)

// Routes and communities that we do not know, from a peer of its own and through FRR as its reflector: the sessions stay, what is left
// out is counted by name, a route with such communities is used, and the rest works.
func TestUnknown(t *testing.T) {
	t.Parallel()
	l := newLab(t, Peer{Addr: netip.MustParseAddr("198.51.100.3"), AS: 65000, Passive: true})
	far := l.Host("far")
	l.Link(far, "198.51.100.3/24", l.us.host, "198.51.100.1/24")
	l.Link(far, "203.0.113.3/24", l.leaf, "203.0.113.2/24")
	far.Route("192.0.2.1/32", "via", "198.51.100.1")
	l.us.host.Ready()
	l.leaf.Ready()
	l.frr.Do("configure terminal", "router bgp 65000", "neighbor 203.0.113.3 remote-as 65000", "neighbor 203.0.113.3 passive",
		"address-family l2vpn evpn", "neighbor 203.0.113.3 activate", "neighbor 203.0.113.3 route-reflector-client", "neighbor 192.0.2.1 route-reflector-client")
	direct, reflected := newScript(t, far, "198.51.100.3", oursAddr), newScript(t, far, "203.0.113.3", "203.0.113.2")
	l.bridged.Until("ping", func() bool { return pings(l.bridged, "172.16.0.2") })
	peers := func() (since []time.Time) {
		for _, p := range l.us.speaker.Status().Peers {
			if p.State != "established" {
				return nil
			}
			since = append(since, p.Since)
		}
		return since
	}
	l.us.host.Until("sessions", func() bool { return len(peers()) == 2 })
	before := peers()

	for _, r := range strange {
		direct.announce(usual, r)
		reflected.announce(usual, r)
	}
	var together [][]byte
	for _, r := range strange {
		together = append(together, r)
	}
	direct.announce(usual+unknown, append(together, hostRoute(1))...) // one UPDATE has them all
	reflected.announce(usual+unknown, hostRoute(2))
	reflected.announce(usual, nlri(1, esi, "\xff\xff\xff\xff", "\x00\x00\x00"), nlri(4, esi, vtep3))
	for n := byte(1); n <= 2; n++ {
		mac, ip := frame.MAC{2, 0, 0, 0, 6, n}, netip.MustParseAddr(fmt.Sprintf("2001:db8:16::60%d", n))
		at := []string{"", "198.51.100.3:4789", "203.0.113.3:4789"}[n]
		l.us.host.Until(fmt.Sprintf("host %d", n), func() bool {
			e, _ := l.us.node.Neighbours(100).Table().Lookup(ip)
			return l.us.at(mac) == at && e.MAC == mac && e.Flags&arp.Router != 0
		})
	}
	l.us.host.Until("types 1 and 4", func() bool {
		left := l.us.speaker.Status().LeftOut
		return left["esi-label"] == 1 && left["target"] == 1
	})
	direct.withdraw(together...)
	reflected.withdraw(together...)
	direct.withdraw(hostRoute(1))
	reflected.withdraw(hostRoute(2))
	l.us.host.Until("the hosts to go", func() bool {
		return l.us.at(frame.MAC{2, 0, 0, 0, 6, 1}) == "" && l.us.at(frame.MAC{2, 0, 0, 0, 6, 2}) == ""
	})
	st := l.us.speaker.Status()
	for name := range strange {
		if st.Malformed[name] != 3 { // alone, together, and withdrawn; FRR passes none on
			t.Errorf("%s: %d, want 3", name, st.Malformed[name])
		}
	}
	if now := peers(); !slices.Equal(now, before) {
		t.Errorf("sessions were lost: since %v, before %v", now, before)
	}
	for name, s := range map[string]*script{"ours": direct, "FRR's": reflected} {
		if x := s.ended.Load(); x != nil {
			t.Errorf("%s session has ended: % x", name, *x)
		}
	}
	l.bridged.Ping("172.16.0.2", 1)
	l.theirs.Ping("172.18.1.2", 1)
}
