package node

import (
	"strings"
	"testing"
)

// What a tunnel and a gateway with one address must have in common.
func TestShareErrors(t *testing.T) {
	const gateway, port = `"gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24", "fd00::1/64"]}`, `{"name": "eth0", "type": "packet"}`
	for _, c := range []struct{ tunnel, ports, segment, want string }{
		{`"local": "10.0.0.1"`, port, gateway, ""},
		{`"local": "10.0.0.1", "type": "ipip"`, port, gateway, ""},
		{`"local": "10.0.0.1", "local6": "fd00::1", "mac": "02:00:00:00:00:01", "prefix": "10.0.0.0/24", "prefix6": "fd00::/64"`, port, gateway, ""},
		{`"local": "10.0.0.1", "mac": "02:00:00:00:00:02"`, port, gateway,
			"tunnels[0].mac: 02:00:00:00:00:02: is not that of the gateway in VNI 7 with the same address, 02:00:00:00:00:01"},
		{`"local": "10.0.0.1", "prefix": "10.0.0.0/16"`, port, gateway,
			"tunnels[0].prefix: 10.0.0.0/16: is not that of the gateway in VNI 7 with the same address, 10.0.0.0/24"},
		{`"local": "10.0.0.1", "local6": "fd00::1", "prefix6": "fd00::/48"`, port, gateway,
			"tunnels[0].prefix6: fd00::/48: is not that of the gateway in VNI 7 with the same address, fd00::/64"},
		{`"local": "10.0.0.1", "local6": "fd00::2"`, port, gateway, "tunnels[0].local6: fd00::2: is no address of the gateway in VNI 7, which has local"},
		{`"local": "10.0.0.2", "local6": "fd00::1"`, port, gateway, "tunnels[0].local: 10.0.0.2: is no address of the gateway in VNI 7, which has local6"},
		{`"local": "10.0.0.1"`, port, strings.Replace(gateway, `"vrf"`, `"anycast": true, "vtepMAC": "02:00:00:00:00:09", "vrf"`, 1),
			"tunnels[0].local: 10.0.0.1: is the address of an anycast gateway, in VNI 7"},
		{`"local": "10.0.0.1"`, port + `, {"name": "eth1", "type": "packet"}`, gateway,
			"tunnels[0].local: 10.0.0.1: is the address of a gateway on several packet ports, eth0 and eth1, in VNI 7"},
		{`"local": "10.0.0.1", "gateway": "10.1.0.9"`, port, gateway, "tunnels[0].gateway: 10.1.0.9: is not in 10.0.0.0/24"},
		{`"local": "10.0.0.1", "prefix": "10.0.0.0/16"`, port, strings.Replace(gateway, "10.0.0.1/24", "10.0.0.1/32", 1), ""},
		// Not shared: other prefixes and MACs are nobody's business.
		{`"local": "10.0.0.1", "prefix": "10.0.0.0/16"`, `{"name": "eth0", "type": "packet", "namespace": "x"}`, gateway, ""},
		{`"local": "10.0.0.2", "prefix": "10.0.0.0/16", "mac": "02:00:00:00:00:02"`, port, gateway, ""},
	} {
		members := `{"port": "eth0"}`
		if strings.Contains(c.ports, "eth1") {
			members += `, {"port": "eth1"}`
		}
		_, err := Parse([]byte(`{"tunnels": [{"name": "t", "underlay": "packet", "bind": "eth0", ` + c.tunnel + `}], "ports": [` + c.ports + `],
			"segments": [{"vni": 7, "members": [` + members + `], ` + c.segment + `}], "vrfs": [{"name": "v"}]}`))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v\nwant %s", c.tunnel, err, c.want)
		}
	}
}

// A tunnel and a gateway with one address that do not share it are worth a warning.
func TestUnshared(t *testing.T) {
	for _, c := range []struct {
		tunnel, member string
		warns          int
	}{
		{`"underlay": "packet", "bind": "eth0"`, `{"port": "eth0"}`, 0},
		{`"underlay": "packet", "bind": "eth0"`, `{"port": "eth0", "vlan": 7}`, 1},
		{`"underlay": "packet", "bind": "eth0", "local6": "fd00::1"`, `{"port": "eth0", "vlan": 7}`, 2},
		{`"underlay": "packet", "bind": "eth1"`, `{"port": "eth0"}`, 1},
		{`"underlay": "packet", "bind": "eth0"`, `{"port": "tap0"}`, 1},
		{`"type": "vxlan"`, `{"port": "eth0"}`, 1},
	} {
		cfg, err := Parse([]byte(`{"tunnels": [{"name": "t", "local": "10.0.0.1", ` + c.tunnel + `}],
			"ports": [{"name": "eth0", "type": "packet"}, {"name": "tap0", "type": "tap"}],
			"segments": [{"vni": 7, "members": [` + c.member + `], "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24", "fd00::1/64"]}},
				{"vni": 8, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:02", "addresses": ["10.0.9.1/24"]}}], "vrfs": [{"name": "v"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if list := cfg.withShared().unshared(); len(list) != c.warns {
			t.Errorf("%s, %s: warnings %q, want %d", c.tunnel, c.member, list, c.warns)
		}
	}
}
