package flannel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func mustNetwork(t testing.TB, text string) *Network {
	t.Helper()
	n := check.Must(ParseNetwork([]byte(text)))(t)
	return n
}

// Defaults and what replaces them, of both families.
func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]string{
		`{"network": "10.3.0.0/16"}`: "10.3.0.0/16 10.3.1.0/24 10.3.255.0/24",
		`{"Network": "10.3.0.0/16", "SubnetMin": "10.3.5.0", "SubnetMax": "10.3.8.0", "SubnetLen": 28}`: "10.3.0.0/16 10.3.5.0/28 10.3.8.0/28",
		`{"Network": "10.3.0.0/22"}`:                                            "10.3.0.0/22 10.3.1.0/24 10.3.3.0/24",
		`{"Network": "10.3.0.0/23"}`:                                            "10.3.0.0/23 10.3.0.128/25 10.3.1.128/25",
		`{"Network": "10.3.0.0/28"}`:                                            "10.3.0.0/28 10.3.0.4/30 10.3.0.12/30",
		`{"Network": "10.3.7.9/16", "SubnetLen": 20}`:                           "10.3.0.0/16 10.3.16.0/20 10.3.240.0/20",
		`{"enableIPv6": true, "ipv6Network": "fc00::/48", "enableIPv4": false}`: "fc00::/48 fc00:0:0:1::/64 fc00:0:0:ffff::/64",
		`{"EnableIPv6": true, "IPv6Network": "fc00::/48", "IPv6SubnetMin": "fc00:0:0:1::", "IPv6SubnetMax": "fc00:0:0:f::", "IPv6SubnetLen": 124, "enableIPv4": false}`: "fc00::/48 fc00:0:0:1::/124 fc00:0:0:f::/124",
		`{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00::/56"}`:                                                                                    "10.3.0.0/16 10.3.1.0/24 10.3.255.0/24 fc00::/56 fc00:0:0:1::/64 fc00:0:0:ff::/64",
	} {
		n := mustNetwork(t, text)
		var got []string
		for _, r := range []Range{n.IPv4, n.IPv6} {
			if r.IsValid() {
				got = append(got, fmt.Sprint(r.Network, r.First, r.Last))
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: %s, want %s", text, g, want)
		}
		if n.Backend.Type != "udp" || n.Backend.Port != 8285 {
			t.Errorf("%s: backend %+v, want udp", text, n.Backend)
		}
		j, err := json.Marshal(n)
		if err != nil {
			t.Error(err)
		}
		if again := mustNetwork(t, string(j)); again.IPv4 != n.IPv4 || again.IPv6 != n.IPv6 || again.Backend.Port != n.Backend.Port {
			t.Errorf("%s: read again %+v, was %+v", j, again, n)
		}
	}
}

func TestBackend(t *testing.T) {
	for text, want := range map[string]Backend{
		`{"Type": "vxlan"}`: {Type: "vxlan", VNI: 1, Port: 8472},
		`{"type": "VXLAN", "vni": 300, "port": 4789, "mtu": 1400, "gbp": true, "learning": true, "directRouting": true}`: {
			Type: "vxlan", VNI: 300, Port: 4789, MTU: 1400, GBP: true, Learning: true, DirectRouting: true},
		`{"Type": "vxlan", "VNI": 7, "vni": 300, "PORT": 1}`: {Type: "vxlan", VNI: 300, Port: 1}, // names in any case, of one twice the last: flannel's too
		`{"Type": "vxlan", "Port": 0}`:                       {Type: "vxlan", VNI: 1, Port: 8472},
		`{"Type": "host-gw"}`:                                {Type: "host-gw"},
		`{"Type": "ipip", "DirectRouting": true}`:            {Type: "ipip", DirectRouting: true},
		`{"Type": "udp"}`:                                    {Type: "udp", Port: 8285},
		`{"Type": "udp", "Port": 99}`:                        {Type: "udp", Port: 99},
		`{"Type": "wireguard", "PSK": "x"}`:                  {Type: "wireguard"},
		`{"Type": "extension", "VNI": "anything"}`:           {Type: "extension"},
	} {
		b := mustNetwork(t, `{"Network": "10.3.0.0/16", "Backend": `+text+`}`).Backend
		if string(b.Raw) != text {
			t.Errorf("%s: %s is kept", text, b.Raw)
		}
		if b.Raw = nil; !reflect.DeepEqual(b, want) {
			t.Errorf("%s: %+v, want %+v", text, b, want)
		}
		supported := slices.Contains([]string{"vxlan", "host-gw", "ipip", "udp"}, want.Type)
		if err := b.Supported(); (err == nil) != supported || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", text, err)
		}
		if want.Type == "wireguard" || want.Type == "extension" {
			continue
		}
		if again, err := parseBackend(b.raw()); err != nil || again.VNI != want.VNI || again.Port != want.Port || again.MTU != want.MTU || again.DirectRouting != want.DirectRouting {
			t.Errorf("%s: read again %+v, %v", b.raw(), again, err)
		}
	}
	for _, c := range []struct {
		backend string
		outer6  bool
		want    int
	}{{"vxlan", false, 50}, {"vxlan", true, 70}, {"ipip", false, 20}, {"udp", false, 28}, {"host-gw", false, 0}} {
		if got := (&Backend{Type: c.backend}).Overhead(c.outer6); got != c.want {
			t.Errorf("%s: overhead %d, want %d", c.backend, got, c.want)
		}
	}
}

func TestMTU(t *testing.T) {
	for text, want := range map[string]int{
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`:                                                   1450,
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "MTU": 1400}}`:                                      1350,
		`{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`: 1430,
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "host-gw"}}`:                                                 1500,
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "ipip"}}`:                                                    1480,
	} {
		if got := mustNetwork(t, text).MTU(1500); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// Each error names the field, the value and what is allowed.
func TestNetworkErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "flannel: network: unexpected end of JSON input",
		`{"Network": "10.3.0.0/16", "SubnetLen": 31}`:           "flannel: network.SubnetLen: 31: must be at most 30: a node needs addresses for a tunnel and a bridge",
		`{"Network": "10.3.0.0/16", "SubnetLen": 17}`:           "flannel: network.SubnetLen: 17: must be 18 or more: the network must have four subnets",
		`{"Network": "10.3.0.0/29"}`:                            "flannel: network.Network: 10.3.0.0/29: must be a prefix of at most 28 bits",
		`{"Network": "10.3.0.0"}`:                               `flannel: network.Network: 10.3.0.0: must be an IPv4 prefix such as 10.230.0.0/16`,
		`{"Network": "127.0.0.0/8"}`:                            "flannel: network.Network: 127.0.0.0/8: must be a network of hosts",
		`{}`:                                                    `flannel: network.Network: "": must be a prefix such as 10.230.0.0/16`,
		`{"Network": "10.3.0.0/16", "SubnetMin": "10.4.0.0"}`:   "flannel: network.SubnetMin: 10.4.0.0: must be an address of 10.3.0.0/16",
		`{"Network": "10.3.0.0/16", "SubnetMax": "10.3.4.128"}`: "flannel: network.SubnetMax: 10.3.4.128: must be the first address of a subnet, such as 10.3.4.0",
		`{"EnableIPv4": false}`:                                 "flannel: network.EnableIPv6: false: IPv4 and IPv6 are both off",
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "VNI": 16777216}}`:              "flannel: network.Backend.VNI: 16777216: must be 1 to 16777215",
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "Port": 70000}}`:                "flannel: network.Backend.Port: 70000: must be 1 to 65535, or 0 for 8472",
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "MTU": 99}}`:                    "flannel: network.Backend.MTU: 99: must be 576 to 65535, or 0 for that of the interface",
		`{"Network": "10.3.0.0/16", "Backend": "vxlan"}`:                                         `flannel: network.Backend: "vxlan": must be an object`,
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "VNI": "1"}}`:                   `flannel: network.Backend.VNI: "1": must be a whole number`,
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "vni": 1.5}}`:                   "flannel: network.Backend.VNI: 1.5: must be a whole number",
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "Port": 99999999999999999999}}`: "flannel: network.Backend.Port: 99999999999999999999: must be a whole number",
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "udp", "Port": "1"}}`:                    `flannel: network.Backend.Port: "1": must be a whole number`,
		`{"Network": "10.3.0.0/16", "Backend": {"Type": "ipip", "DirectRouting": 1}}`:            "flannel: network.Backend.DirectRouting: 1: must be true or false",
		`{"Network": "10.3.0.0/16", "Backend": {"Type": 5}}`:                                     "flannel: network.Backend.Type: 5: must be a string",
		`{"Network": "10.3.0.0/16", "SubnetLen": "24"}`:                                          `flannel: network.SubnetLen: "24": must be a whole number, 0 or more`,
		`{"Network": "10.3.0.0/16", "SubnetLen": -1}`:                                            "flannel: network.SubnetLen: -1: must be a whole number, 0 or more",
		`{"Network": "10.3.0.0/16", "EnableIPv6": "true"}`:                                       `flannel: network.EnableIPv6: "true": must be true or false`,
		`{"Network": 5}`: "flannel: network.Network: 5: must be a string without escapes",
		`[]`:             "flannel: network: []: must be an object",
		`{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "10.0.0.0/8"}`:                     "flannel: network.IPv6Network: 10.0.0.0/8: must be an IPv6 prefix such as fd00:230::/48",
		strings.Repeat(" ", maxNetwork) + `{"Network": "10.3.0.0/16"}`:                                    "flannel: network: 65562 bytes: must be at most 65536",
		`{"Network":"10.3.0.0/16","EnableIPv6":true,"IPv6Network":"fc00::/48","Backend":{"Type":"ipip"}}`: "flannel: network.EnableIPv6: true: the backend ipip is for IPv4",
	} {
		if _, err := ParseNetwork([]byte(text)); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"10.3.0.0"`, "10.3.0.0"), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
}

func prefixes(list ...string) (p []netip.Prefix) {
	for _, s := range list {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

func TestFree(t *testing.T) {
	r := mustNetwork(t, `{"Network": "10.3.0.0/16", "SubnetMax": "10.3.8.0"}`).IPv4
	for _, c := range []struct{ taken, want []netip.Prefix }{
		{nil, prefixes("10.3.1.0/24", "10.3.2.0/24", "10.3.3.0/24", "10.3.4.0/24", "10.3.5.0/24", "10.3.6.0/24", "10.3.7.0/24", "10.3.8.0/24")},
		{prefixes("10.3.4.0/22", "10.3.1.0/24", "10.3.3.4/30", "10.3.3.0/30", "192.0.2.0/24"), prefixes("10.3.2.0/24", "10.3.8.0/24")},
		{prefixes("10.0.0.0/8"), nil},
		{prefixes("10.3.0.0/21", "10.3.8.0/21", "10.3.2.0/24"), nil},
	} {
		if got := slices.Collect(r.Free(c.taken)); !slices.Equal(got, c.want) {
			t.Errorf("beside %v: %v, want %v", c.taken, got, c.want)
		}
	}
	six := mustNetwork(t, `{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fc00::/16"}`).IPv6 // 2^48 subnets
	n := 0
	for p := range six.Free(prefixes("fc00::/17")) {
		if n++; n == 100 {
			if p.String() != "fc00:8000:0:63::/64" {
				t.Errorf("the hundredth is %v", p)
			}
			break
		}
	}
	top := Range{netip.MustParsePrefix("255.0.0.0/8"), netip.MustParsePrefix("255.255.254.0/24"), netip.MustParsePrefix("255.255.255.0/24")}
	if got := slices.Collect(top.Free(nil)); len(got) != 2 {
		t.Errorf("at the end of all addresses: %v", got)
	}
}

func TestSuits(t *testing.T) {
	n := mustNetwork(t, `{"Network": "10.3.0.0/16", "SubnetMax": "10.3.8.0", "EnableIPv6": true, "IPv6Network": "fc00::/48"}`)
	for key, want := range map[string]bool{
		"10.3.1.0-24&fc00:0:0:1::-64": true,
		"10.3.8.0-24&fc00:0:0:2::-64": true,
		"10.3.9.0-24&fc00:0:0:1::-64": false,
		"10.3.0.0-24&fc00:0:0:1::-64": false,
		"10.3.2.0-25&fc00:0:0:1::-64": false,
		"10.3.2.0-24&fc01:0:0:1::-64": false,
		"10.3.2.0-24":                 false,
		"0.0.0.0-0&fc00:0:0:1::-64":   false,
	} {
		s, err := ParseKey(key)
		if err != nil || n.Suits(s) != want {
			t.Errorf("%s: %v, %v", key, n.Suits(s), err)
		}
	}
}
