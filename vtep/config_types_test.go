package vtep

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A type that the underlay cannot carry, and settings that it has no use for.
func TestTypeErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		cfg        Config
		us         []Underlay
	}{
		{"no type", "Config.Type: 4", Config{Type: 4}, []Underlay{fake4()}},
		{"IP in IP over UDP", "Config.Type: ipip needs an underlay of raw IP, 192.0.2.1:4789", Config{Type: encap.TypeIPIP}, []Underlay{fake4()}},
		{"IP in IP half over UDP", "Config.Type: ipip needs an underlay of raw IP, [2001:db8::1]:4789", Config{Type: encap.TypeIPIP}, []Underlay{raw4(), fake6()}},
		{"VXLAN over raw IP", "Config.Type: vxlan needs an underlay of UDP, 192.0.2.1", Config{}, []Underlay{raw4()}},
		{"GPE over raw IP", "Config.Type: gpe needs an underlay of UDP, 2001:db8::1", Config{Type: encap.TypeGPE}, []Underlay{raw6()}},
		{"P of VXLAN", "Config.EthernetWithoutP: vxlan", Config{EthernetWithoutP: true}, []Underlay{fake4()}},
		{"P of IP in IP", "Config.EthernetWithoutP: ipip", Config{Type: encap.TypeIPIP, EthernetWithoutP: true}, []Underlay{raw4()}},
		{"TOS", "Config.Header.TOS: -4", Config{Header: Header{TOS: -4}}, []Underlay{fake4()}},
		{"MTU of GPE", "Config.MTU", Config{Type: encap.TypeGPE, MTU: 36 + 13}, []Underlay{fake4()}},
		{"MTU of IP in IP", "Config.MTU", Config{Type: encap.TypeIPIP, MTU: 20 + 13}, []Underlay{raw4()}},
		{"MTU of IP in IPv6", "Config.MTU", Config{Type: encap.TypeIPIP, MTU: 40 + 13}, []Underlay{raw6()}},
	} {
		v, err := New(&c.cfg, c.us...)
		if err == nil || v != nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "vtep: ") {
			t.Errorf("%s: %v, want something about %s", c.name, err, c.want)
		}
	}
	for _, c := range []struct {
		cfg Config
		us  []Underlay
	}{
		{Config{Type: encap.TypeGPE, EthernetWithoutP: true, MTU: 36 + 14}, []Underlay{fake4()}},
		{Config{Type: encap.TypeIPIP, MTU: 40 + 14}, []Underlay{raw4(), raw6()}},
	} {
		newVTEP(t, &c.cfg, c.us...)
	}
}

// IP in IP has neither ports nor VNIs.
func TestIPIPTableErrors(t *testing.T) {
	v := ipipVTEP(t, Config{}, raw4())
	_, peer := v.AddPeer(at(1))
	_, far := v.NextHop(host(at(1)), 7)
	_, farPort := v.NextHop(at(1), 7)
	_, own := v.AddPeer(host(local4))
	_, six := v.AddPeer(host(at6(1)))
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"port of a peer", "198.51.0.1:4789: IP-in-IP has no ports", peer},
		{"port in a flood list", "IP-in-IP has no ports", v.SetFlood(0, host(at(2)), at(1))},
		{"next hop", "IP-in-IP has none", far},
		{"next hop with a port", "no ports", farPort},
		{"own address", "own address", own},
		{"other family", "address family", six},
	} {
		check.ErrorHas(t, c.err, "vtep: ", c.want)
	}
	if st := v.Stats(); len(st.Peers) != 0 || len(v.Flood(0)) != 0 {
		t.Errorf("errors have left %+v, %v", st, v.Flood(0))
	}
	n := addPeer(t, v, host(at(1)))
	if got := v.PeerName(n); got != at(1).Addr().String() || v.PeerName(n+1) != "" {
		t.Errorf("%q, %q", got, v.PeerName(n+1))
	}
	if st := v.Stats(); st.Peers[0].Addr != netip.AddrPortFrom(at(1).Addr(), 0) || !st.Peers[0].Listed {
		t.Errorf("%+v", st.Peers[0])
	}
}
