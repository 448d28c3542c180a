package node

import (
	"slices"
	"strings"
	"testing"
)

// Each kind of entry, and the rows that the plane gets of it.
func TestEntryRows(t *testing.T) {
	c, err := Parse([]byte(`{"tunnels": [{"name": "a", "local": "10.0.0.1"}, {"name": "b", "local": "fd00::1"}], "ports": [{"name": "t1"}],
  "segments": [{"vni": 10, "tunnels": [{"tunnel": "a"}, {"tunnel": "b", "vni": 77}], "members": [{"port": "t1"}], "fdb": [
    {"mac": "02:00:00:00:00:01", "port": "t1"},
    {"mac": "02:00:00:00:00:02", "remote": "10.0.0.2", "tunnel": "a", "vni": 7001},
    {"mac": "02:00:00:00:00:03", "remotes": ["fd00::2", "fd00::3"], "tunnel": "b"},
    {"mac": "02:00:00:00:00:04", "remotes": ["10.0.0.2", "10.0.0.3"], "tunnel": "a", "vni": 7002},
    {"mac": "02:00:00:00:00:05", "filter": true},
    {"mac": "01:00:5e:00:00:01", "filter": true},
    {"mac": "01:00:5e:00:00:02", "remote": "10.0.0.2", "tunnel": "a"},
    {"mac": "01:00:5e:00:00:03", "port": "t1"}], "gateway": {"vrf": "v", "mac": "02:00:00:00:ff:01"}}],
  "vrfs": [{"name": "v", "routes": [{"prefix": "10.9.0.0/16", "via": [{"segment": 10, "mac": "02:00:00:00:00:09", "remote": "10.0.0.2", "tunnel": "a", "vni": 7001}]}]}]}`))
	must(t, err)
	var got []string
	for _, r := range rows(c) {
		got = append(got, r.String())
	}
	if want := []string{
		"mac 02:00:00:00:00:01 vni 10 port t1",
		"mac 02:00:00:00:00:02 vni 10 vtep 10.0.0.2:0 far vni 7001 tunnel a",
		"mac 02:00:00:00:00:03 vni 10 group [fd00::2 fd00::3] tunnel b",
		"group [fd00::2 fd00::3] vni 10 vtep [fd00::2]:0 tunnel b",
		"group [fd00::2 fd00::3] vni 10 vtep [fd00::3]:0 tunnel b",
		"mac 02:00:00:00:00:04 vni 10 group [10.0.0.2 10.0.0.3] vni 7002 tunnel a",
		"group [10.0.0.2 10.0.0.3] vni 7002 vni 10 vtep 10.0.0.2:0 far vni 7002 tunnel a",
		"group [10.0.0.2 10.0.0.3] vni 7002 vni 10 vtep 10.0.0.3:0 far vni 7002 tunnel a",
		"mac 02:00:00:00:00:05 vni 10 filter",
		"mac 01:00:5e:00:00:01 vni 10 filter",
		"mac 01:00:5e:00:00:02 vni 10 vtep 10.0.0.2:0 tunnel a",
		"mac 01:00:5e:00:00:03 vni 10 port t1",
		"prefix 10.9.0.0/16 vrf v via vni 10 mac 02:00:00:00:00:09 vtep 10.0.0.2:0 far vni 7001 tunnel a",
	}; !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What an entry, or the mode of a member, contradicts has its place.
func TestEntryChecks(t *testing.T) {
	const head = `{"tunnels": [{"name": "a", "local": "10.0.0.1"}, {"name": "p", "type": "ipip", "local": "10.0.0.1"}], "ports": [{"name": "t1"}, {"name": "u1", "type": "tun"}], "vrfs": [{"name": "v"}], "segments": [{"vni": 10, `
	entry := func(e string) string {
		return head + `"tunnel": "a", "members": [{"port": "t1"}], "gateway": {"vrf": "v", "mac": "02:00:00:00:ff:01"}, "fdb": [{` + e + `}]}]}`
	}
	hop := func(h string) string {
		return `{"tunnels": [{"name": "a", "local": "10.0.0.1"}], "segments": [{"vni": 10, "tunnel": "a", "gateway": {"vrf": "v", "mac": "02:00:00:00:ff:01", "addresses": ["10.8.0.1/24"]}}],
			"vrfs": [{"name": "v", "routes": [{"prefix": "10.9.0.0/16", "via": [{"segment": 10, ` + h + `}]}]}]}`
	}
	const mac = `"mac": "02:00:00:00:00:01", `
	for text, want := range map[string]string{
		hop(`"ip": "10.8.0.2", "vni": 7`):                                                   "via[0].vni: requires mac, of a router behind the tunnel",
		hop(mac + `"remote": "10.0.0.2", "vni": 16777216`):                                  "via[0].vni: 16777216: must be 1 to 16777215, or 0 for the VNI of the tunnel here",
		entry(`"filter": true`):                                                             "fdb[0].mac: 00:00:00:00:00:00: must be the MAC of one host or of a multicast group",
		entry(mac + `"remote": "10.0.0.2", "remotes": ["10.0.0.2", "10.0.0.3"]`):            "fdb[0]: only one of remote, remotes, port and filter is allowed",
		entry(mac + `"remote": "10.0.0.2", "filter": true`):                                 "fdb[0]: only one of remote, remotes, port and filter is allowed",
		entry(mac + `"port": "t1", "filter": true`):                                         "fdb[0]: only one of remote, remotes, port and filter is allowed",
		entry(mac + `"filter": false`):                                                      "fdb[0]: one of remote, remotes, port and filter is required",
		entry(mac + `"remotes": []`):                                                        "fdb[0]: one of remote, remotes, port and filter is required",
		entry(mac + `"remotes": ["10.0.0.2"]`):                                              "fdb[0].remotes: 10.0.0.2: two or more peers are required; use remote for one",
		entry(mac + `"remotes": ["10.0.0.2", "10.0.0.3", "10.0.0.2"]`):                      "fdb[0].remotes[2]: 10.0.0.2: duplicate",
		entry(mac + `"remotes": ["10.0.0.2", "fd00::3"]`):                                   `fdb[0].remotes[1]: fd00::3: is of another address family than 10.0.0.1, the local address of tunnel "a"`,
		entry(mac + `"remotes": ["10.0.0.1", "10.0.0.3"]`):                                  "fdb[0].remotes[0]: 10.0.0.1: is this node's own address",
		entry(mac + `"remotes": ["239.1.1.1", "10.0.0.3"]`):                                 "fdb[0].remotes[0]: 239.1.1.1: is a multicast group; must be the address of one host",
		entry(mac + `"remote": "10.0.0.2", "vni": 16777216`):                                "fdb[0].vni: 16777216: must be 1 to 16777215, or 0 for the VNI of the tunnel here",
		entry(mac + `"port": "t1", "vni": 7`):                                               "fdb[0].vni: requires remote or remotes",
		entry(mac + `"filter": true, "vni": 7`):                                             "fdb[0].vni: requires remote or remotes",
		entry(mac + `"filter": true, "tunnel": "a"`):                                        "fdb[0].tunnel: requires remote or remotes",
		entry(mac + `"remotes": ["10.0.0.2", "10.0.0.3"], "tunnel": "x"`):                   `fdb[0].tunnel: "x": must be a tunnel of the segment`,
		entry(`"mac": "01:00:5e:00:00:01", "remotes": ["10.0.0.2", "10.0.0.3"]`):            "fdb[0].mac: 01:00:5e:00:00:01: a multicast group needs remote, port or filter",
		entry(`"mac": "02:00:00:00:ff:01", "filter": true`):                                 "fdb[0].mac: 02:00:00:00:ff:01: is the gateway's MAC",
		head + `"fdb": [{` + mac + `"remotes": ["10.0.0.2", "10.0.0.3"]}]}]}`:               "fdb[0].remotes: the segment has no tunnel",
		head + `"tunnel": "p", "fdb": [{` + mac + `"remote": "10.0.0.2", "vni": 7}]}]}`:     "fdb[0].vni: 7: IP-in-IP has no VNI",
		head + `"members": [{"port": "t1", "neighbourMode": "suppress"}]}]}`:                "members[0].neighbourMode: requires neighbours or a gateway with a MAC in the segment",
		head + `"neighbours": {"exposeMACs": true}}]}`:                                      "neighbours.exposeMACs: requires mode proxy, of the segment or of a member: no other hides MACs",
		head + `"neighbours": {}, "members": [{"port": "t1", "neighbourMode": "proxy"}]}]}`: "members[0].neighbourMode: proxy requires a gateway with addresses: it answers with the gateway's MAC",
		head + `"neighbours": {}, "gateway": {"vrf": "v", "addresses": ["10.9.0.1/24"]}, "members": [{"port": "t1", "neighbourMode": "proxy"}]}]}`:  "members[0].neighbourMode: proxy: mac: 00:00:00:00:00:00: must be the MAC of one host",
		head + `"members": [{"port": "u1", "neighbourMode": "access"}], "gateway": {"vrf": "v", "addresses": ["10.9.0.1/24"]}, "neighbours": {}}]}`: `members[0].neighbourMode: port "u1" carries IP without Ethernet`,
		head + `"members": [{"port": "t1", "neighbourMode": "wrong"}], "gateway": {"vrf": "v", "mac": "02:00:00:00:ff:01"}}]}`:                      "members[0].neighbourMode: ",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
	for _, text := range []string{
		entry(mac + `"remote": "10.0.0.2", "vni": 7`), entry(mac + `"remotes": ["10.0.0.2", "10.0.0.3"], "vni": 10, "tunnel": "a", "sticky": true`),
		head + `"members": [{"port": "t1", "neighbourMode": "access"}], "gateway": {"vrf": "v", "mac": "02:00:00:00:ff:01"}}]}`,
		head + `"neighbours": {"mode": "access"}, "members": [{"port": "t1", "neighbourMode": "off"}]}]}`,
	} {
		c, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		first, err := c.MarshalJSON()
		must(t, err)
		again, err := Parse(first)
		if err != nil {
			t.Errorf("%s: read again: %v", text, err)
			continue
		}
		if second, err := again.MarshalJSON(); err != nil || string(second) != string(first) {
			t.Errorf("%s: written and read again: %v", text, err)
		}
	}
}
