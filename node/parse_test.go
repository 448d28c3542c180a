package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// Everything that is wrong is said in one pass, in the order of the file, each with its
// position and its key.
// Multicast groups in flood lists, and link-local addresses.
func TestParseGroups(t *testing.T) {
	for text, want := range map[string]string{
		`{"tunnels":[{"name":"t","local":"10.0.0.1","multicastDevice":"eth0","groupTTL":255}],"segments":[{"vni":1,"tunnel":"t","flood":["239.1.1.1","10.0.0.2"]}]}`: "",
		`{"vrfs":[{"name":"v","pools":[{"mode":"always","subnets":[""]}]}]}`:                                                                                         "vrfs[0].pools[0].subnets[0]: a prefix is required",
		`{"policies":[{"name":"p","sets":{"a":["10.0.0.0/8"],"b":[],"a":["10.1.0.0/16"]}}]}`:                                                                         "policies[0].sets.a: duplicate key",
		`{"segments":[{"vni":1,"neighbours":{"mode":"suppress","perDest":-1}}]}`:                                                                                     "segments[0].neighbours.perDest: -1: must be 0 or more",
		`{"segments":[{"vni":1,"neighbours":{"mode":"suppress","limit":100,"perDest":10}}]}`:                                                                         "",
		`{"tunnels":[{"name":"t","local":"10.0.0.1","groupTTL":256}]}`:                                                                                               "groupTTL: 256: must be 1 to 255, or 0 for 1",
		`{"tunnels":[{"name":"t","local":"10.0.0.1","type":"ipip","groupTTL":1}]}`:                                                                                   "groupTTL: an IP tunnel has no groups",
		`{"tunnels":[{"name":"t","local":"10.0.0.1"}],"segments":[{"vni":1,"tunnel":"t","flood":["ff05::1"]}]}`:                                                      "flood[0]: ff05::1: is of another address family",
		`{"tunnels":[{"name":"t","local":"fd00::1"}],"segments":[{"vni":1,"tunnel":"t","flood":["ff02::1%eth0"]}]}`:                                                  "flood[0]: ff02::1%eth0: a multicast group has no zone",
		`{"tunnels":[{"name":"t","local":"10.0.0.1"}],"segments":[{"vni":1,"tunnel":"t","flood":["239.1.1.1","239.1.1.1"]}]}`:                                        "flood[1]: 239.1.1.1: duplicate",
		`{"tunnels":[{"name":"t","local":"10.0.0.1"}],"segments":[{"vni":1,"tunnel":"t","fdb":[{"mac":"02:00:00:00:00:01","remote":"239.1.1.1"}]}]}`:                 "fdb[0].remote: 239.1.1.1: is a multicast group; must be the address of one host",
		`{"tunnels":[{"name":"t","local":"fe80::1%eth0"}],"segments":[{"vni":1,"tunnel":"t","flood":["fe80::2%eth0","fe80::3"]}]}`:                                   "",
		`{"tunnels":[{"name":"t","local":"fe80::1%eth0"}],"segments":[{"vni":1,"tunnel":"t","flood":["fe80::2%eth1"]}]}`:                                             "flood[0]: fe80::2%eth1: has another zone than fe80::1%eth0",
		`{"tunnels":[{"name":"t","local":"fe80::1"}]}`:                                                                                                               "local: fe80::1: requires a zone, such as fe80::1%eth0",
	} {
		_, err := Parse([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	text := `{
  "tunnels": [
    {"name": "t0", "local": "10.0.0.1", "ttl": 300, "ecn": "none"},
    {"name": "t0", "local": "10.0.0.1"},
    {"name": "ip0", "type": "ipip", "local": "10.0.0.1", "port": 4789}
  ],
  "ports": [{"name": "tap0"}, {"name": "tun0", "type": "tun", "mac": "02:00:00:00:00:01"}],
  "segments": [
    {"vni": 16777216},
    {"vni": 100, "tunnel": "t0", "flood": ["10.0.0.1", "10.0.0.300", "fd00::1"],
     "members": [{"port": "tap0"}, {"port": "tap1"}], "colour": "red",
     "fdb": [{"mac": "02:00:00:00:00:09"}], "ageing": 300},
    {"vni": 100, "members": [{"port": "tap0", "vlan": 5000}]},
    {"vni": 7, "tunnel": "ip0"},
    {"vni": 8, "freeze": 256, "innerVLAN": "keep", "storm": {"unicast": {}, "unknown": {"packets": -1}}, "members": [{"port": "tun0", "locked": true}]}
  ],
  "vrfs": [{"name": "red", "routes": [{"prefix": "10.1.2.3/8", "via": [{"segment": 9}]}, {"prefix": "10.0.0.0/8"}]}],
  "maxMACs": "many", "maxMACs": 5
}`
	_, err := Parse([]byte(text))
	var errs setting.Errors
	if !errors.As(err, &errs) {
		t.Fatalf("%v", err)
	}
	want := []string{
		`3:48: tunnels[0].ttl: 300: must be 1 to 255, 0 for 64, or "inherit"`,
		`3:60: tunnels[0].ecn: "none": must be one of default, normal, compat, rfc3168`,
		`4:14: tunnels[1].name: "t0": duplicate`,
		`4:29: tunnels[1].local: tunnel "t0" already has 10.0.0.1 port 4789`,
		`5:66: tunnels[2].port: 4789: IP-in-IP has no ports`,
		`7:70: ports[1].mac: 02:00:00:00:00:01: a TUN has no MAC`,
		`9:13: segments[0].vni: 16777216: must be 0 to 16777215`,
		`10:44: segments[1].flood[0]: 10.0.0.1: is this node's own address`,
		`10:56: segments[1].flood[1]: "10.0.0.300": must be an IP address such as 10.0.0.1`,
		`10:70: segments[1].flood[2]: fd00::1: is of another address family than 10.0.0.1, the local address of tunnel "t0"`,
		`11:45: segments[1].members[1].port: "tap1": must be the name of a port`,
		`11:55: segments[1].colour: unknown key; allowed are ageing, crossConnect, dscp, fdb, flapHold, flaps, flood, forwardBridgeGroup, forwardPinned, freeze, gateway, hub, innerVLAN, maxMACs, members, missTimeout, multicast, multicastRouters, neighbours, noFlood, noLearning, policy, refuse, routeIsolated, storm, tellMisses, tos, tunnel, tunnels, vni`,
		`12:14: segments[1].fdb[0]: one of remote, remotes, port and filter is required`,
		`12:55: segments[1].ageing: 300: must be a duration such as 300s`,
		`13:13: segments[2].vni: 100: duplicate`,
		`13:55: segments[2].members[0].vlan: 5000: must be 1 to 4094, or 0 for untagged`,
		`14:5: segments[3].gateway: required, or a cross-connect: tunnel "ip0" carries IP without Ethernet`,
		`15:26: segments[4].freeze: 256: must be 0 to 255`,
		`15:44: segments[4].innerVLAN: "keep": must be one of discard, strip, pass`,
		`15:62: segments[4].storm.unicast: unknown key; allowed are broadcast, multicast, unknown`,
		`15:100: segments[4].storm.unknown.packets: -1: must be 0 to 18446744073709551615`,
		`15:127: segments[4].members[0].port: "tun0": an IP port requires a gateway or a cross-connect`,
		`15:145: segments[4].members[0].locked: port "tun0" carries IP without Ethernet`,
		`17:50: vrfs[0].routes[0].prefix: 10.1.2.3/8: has host bits set; the network is 10.0.0.0/8`,
		`17:84: vrfs[0].routes[0].via[0].segment: 9: must be the VNI of a segment`,
		`18:14: maxMACs: "many": must be a number`,
	}
	var got []string
	for _, e := range errs {
		got = append(got, e.Error())
	}
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("got  %s\nwant %s", g, w)
		}
	}
}

// A key that there is not, or twice, hides no wrong value beside it, nor does a value that
// contradicts others, or one that could not be read.
func TestParseBeside(t *testing.T) {
	for text, want := range map[string]string{
		`{"gateway": {"perSendr": 5, "total": -1}}`: `1:14: gateway.perSendr: unknown key; allowed are fragments, perNeighbour, perSender, queued, total, waiting
1:38: gateway.total: -1: must be 1 to 1000000000, or 0 for 1000`,
		`{"gateway": {"waiting": -2, "total": -1, "total": 3}}`: `1:25: gateway.waiting: -2: must be 1 to 16777216, or 0 for 1024
1:42: gateway.total: duplicate key`,
		`{"gateway": {"perSender": "5", "total": -1}}`: `1:27: gateway.perSender: "5": must be a number
1:41: gateway.total: -1: must be 1 to 1000000000, or 0 for 1000`,
		`{"tunnels": [{"name": "t", "local": "x", "port": 70000, "mtu": 10, "maxPeers": -1, "queues": -1, "mark": "x", "gateway": "10.0.0.9"}]}`: `1:37: tunnels[0].local: "x": must be an IP address such as 10.0.0.1
1:50: tunnels[0].port: 70000: must be 0 to 65535
1:64: tunnels[0].mtu: 10: must be at least 50 over 0.0.0.0, to leave room for a frame
1:80: tunnels[0].maxPeers: -1: must be 1 to 65000, or 0 for 1024
1:94: tunnels[0].queues: -1: must be 1 to 256, or 0 for 1
1:106: tunnels[0].mark: "x": must be a number
1:122: tunnels[0].gateway: an underlay of type udp does not have this setting`,
		`{"tunnels": [{"name": "t", "local": "x", "underlay": "packet", "bind": "eth0", "gateway": "10.0.0.9", "mac": "01:00:00:00:00:01", "queues": -1}]}`: `1:37: tunnels[0].local: "x": must be an IP address such as 10.0.0.1
1:110: tunnels[0].mac: 01:00:00:00:00:01: must be the MAC of one host
1:141: tunnels[0].queues: -1: must be 1 to 256, or 0 for 1`,
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "type": "ipp", "mtu": 25, "gateway": "10.0.0.9", "peerSettings": [{"address": "10.0.0.2", "port": "x", "tos": 3}]}]}`: `1:57: tunnels[0].type: "ipp": must be one of vxlan, gpe, ipip, fou
1:147: tunnels[0].peerSettings[0].port: "x": must be a number
1:159: tunnels[0].peerSettings[0].tos: 3: must be a multiple of 4; the two low bits are ECN`,
		`{"ports": [{"name": "p", "type": "pakcet", "promiscuous": true, "queues": -1}]}`: `1:34: ports[0].type: "pakcet": must be one of tap, tun, veth, interface, packet
1:75: ports[0].queues: -1: must be 1 to 256, or 0 for 1`,
		`{"ports": [{"name": "p", "promiscuous": true, "mtu": -1, "queues": -1}]}`: `1:41: ports[0].promiscuous: a port of type tap does not have this setting
1:54: ports[0].mtu: -1: must be 68 to 65521, or 0 for that of the device
1:68: ports[0].queues: -1: must be 1 to 256, or 0 for 1`,
		`{"segments": [{"vni": 1, "freeze": 300, "ageing": "500ms", "fdb": [{"mac": "02:00:00:00:00:01", "remote": "x"}]}]}`: `1:36: segments[0].freeze: 300: must be 0 to 255
1:51: segments[0].ageing: 500ms: must be 1s to 596523h14m7s
1:107: segments[0].fdb[0].remote: "x": must be an IP address such as 10.0.0.1`,
		`{"segments": [{"vni": 1, "storm": {"known": {}}, "members": [{"port": "no", "maxMACs": -1}]}]}`: `1:36: segments[0].storm.known: unknown key; allowed are broadcast, multicast, unknown
1:71: segments[0].members[0].port: "no": must be the name of a port
1:88: segments[0].members[0].maxMACs: -1: must be 0 or more`,
	} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v\nwant\n%s", text, err, want)
		}
	}
}

// One mistake is one error, at its own key.
func TestParseOnce(t *testing.T) {
	for text, want := range map[string]string{
		`"segments": [{"vni": 1, "gateway": {"vrf": "v", "mac": "01:00:00:00:00:01", "addresses": ["10.0.0.1/24"]}}]`: `segments[0].gateway.mac: 01:00:00:00:00:01: must be the MAC of one host`,
		`"segments": [{"vni": 1, "members": [{"port": "p", "neighbourMode": "suppress"}], "neighbours": {"mode": "proxy"},
		 "gateway": {"vrf": "v", "mac": "01:00:00:00:00:01", "anycast": true, "addresses": ["10.0.0.1/24"]}}]`: `segments[0].gateway.mac: 01:00:00:00:00:01: must be the MAC of one host
segments[0].gateway.vtepMAC: required for an anycast gateway, and different from MAC`,
		`"segments": [{"vni": 1, "neighbours": {"accessMAC": "01:00:00:00:00:01"}, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}}]`: `segments[0].neighbours.accessMAC: 01:00:00:00:00:01: must be the MAC of one host`,
		`"segments": [{"vni": 1, "members": [{"port": "t"}]}], "ports": [{"name": "t", "ip": true}, {"name": "p"}]`:                       `ports[0].ip: a port of type tap does not have this setting`,
		`"segments": [{"vni": 1000000000, "neighbours": {}, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}}]`:                        `segments[0].vni: 1000000000: must be 0 to 16777215`,
	} {
		if !strings.Contains(text, "ports") {
			text += `, "ports": [{"name": "p"}]`
		}
		c := new(Config)
		if _, err := conf.Read([]byte("{"+text+`, "vrfs": [{"name": "v"}]}`), c, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v\nwant\n%s", text, err, want)
		}
	}
}

// What is wrong is said in the words of a file.
func TestParseWords(t *testing.T) {
	for text, want := range map[string]string{
		`"segments": [{"vni": 1, "fdb": [{"mac": "ff:ff:ff:ff:ff:ff", "filter": true}]}]`:              `segments[0].fdb[0].mac: ff:ff:ff:ff:ff:ff: must be the MAC of one host or of a multicast group`,
		`"segments": [{"vni": 1, "fdb": [{"mac": "02:00:00:00:00:01", "filter": true, "port": "p"}]}]`: `segments[0].fdb[0]: only one of remote, remotes, port and filter is allowed`,
		`"segments": [{"vni": 1, "neighbours": {"static": [{"mac": "02:00:00:00:00:01"}]}}]`:           `segments[0].neighbours.static[0].ip: an address is required`,
		`"control": {"mode": "0600"}`:                                    `control.mode: requires socket`,
		`"tunnels": [{"name": "t", "local": "10.0.0.1", "ttl": "none"}]`: `tunnels[0].ttl: "none": must be 1 to 255, 0 for 64, or "inherit"`,
		`"tunnels": [{"name": "t", "local": "10.0.0.1", "ttl": -1}]`:     `tunnels[0].ttl: -1: must be a number up to 255 or a word such as "inherit"`,
		`"tunnels": [{"name": "t", "local": "10.0.0.1", "tos": 256}]`:    `tunnels[0].tos: 256: must be 0 to 252, "inherit", "priority" or "none"`,
		`"policies": [{"name": "p", "rules": [{"srcSet": "no"}]}]`:       `policies[0].rules[0].srcSet: "no": must be the name of a set`,
		`"policies": [{"name": "p", "rules": [{"icmp": ["8"]}]}]`:        `policies[0].rules[0].protocol: 0: must be 1 or 58 for ICMP types`,
	} {
		_, err := Parse([]byte("{" + text + "}"))
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n%v\nwant\n%s", text, err, want)
		}
	}
}

// A file has no program around it, a configuration in Go has.
func TestParseOwn(t *testing.T) {
	text := asText(&Config{Ports: []Port{{Name: "p", Type: PortOwn}}})
	if err := (&Config{Ports: []Port{{Name: "p", Type: PortOwn}}}).Check(); err != nil {
		t.Error(err)
	}
	const want = "1:30: ports[0].type: own: must be tap, tun, veth, interface or packet"
	if _, err := Parse(text); err == nil || err.Error() != want {
		t.Errorf("%v of %s", err, text)
	}
}

// Keys that only one kind of underlay has.
func TestParseUnderlay(t *testing.T) {
	for text, want := range map[string]string{
		`"underlay": "raw"`:                               `underlay: "raw": must be one of udp, packet`,
		`"underlay": "packet"`:                            `bind: the name of an interface is required`,
		`"underlay": "packet", "bind": "eth0", "mark": 5`: `mark: an underlay of type packet does not have this setting`,
		`"underlay": "packet", "bind": "eth0", "type": "ipip", "udpChecksum": "on"`: `udpChecksum: IP-in-IP has no UDP header`,
		`"underlay": "packet", "bind": "eth0", "type": "ipip", "groupTTL": 2`:       `groupTTL: an IP tunnel has no groups`,
		`"underlay": "packet", "type": "ipip"`:                                      `bind: the name of an interface is required`,
		`"underlay": "packet", "bind": "eth0", "multicastDevice": "eth1"`:           `multicastDevice: an underlay of type packet does not have this setting`,
		`"gateway": "10.0.0.9"`:                                            `gateway: an underlay of type udp does not have this setting`,
		`"prefix": "10.0.0.0/24"`:                                          `prefix: an underlay of type udp does not have this setting`,
		`"mac": "02:00:00:00:00:01"`:                                       `mac: an underlay of type udp does not have this setting`,
		`"underlay": "packet", "bind": "eth0", "gateway": "fd00::1"`:       `gateway: fd00::1: is of another address family than 10.0.0.1`,
		`"underlay": "packet", "bind": "eth0", "prefix": "fd00::/64"`:      `prefix: fd00::/64: is of another address family than 10.0.0.1`,
		`"underlay": "packet", "bind": "eth0", "mac": "01:00:00:00:00:01"`: `mac: 01:00:00:00:00:01: must be the MAC of one host`,
		`"underlay": "packet", "bind": "eth0", "mac": "02:00:00:00:00:01", "gateway": "10.0.0.9", "prefix": "10.0.0.0/24"`: "",
	} {
		_, err := Parse([]byte(`{"tunnels": [{"name": "t", "local": "10.0.0.1", ` + text + `}]}`))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), "tunnels[0]."+want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What is no JSON has a position too.
func TestParseSyntax(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "1:1: unexpected end of the file",
		"{\n \"ports\": [":                 "2:12: unexpected end of the file",
		"{\"ports\": [}":                   "1:12: invalid character '}'",
		"{} {}":                            "1:4: invalid character '{' after top-level value",
		"{\n  ports: 1}":                   "2:3: invalid character 'p' looking for beginning of object key string",
		"[]":                               "1:1: a list: must be an object",
		`{"ports": null}`:                  "1:11: ports: null: leave the key out instead",
		`{"ports": {}}`:                    "1:11: ports: an object: must be a list",
		`{"maxMACs": 1.5}`:                 "1:13: maxMACs: 1.5: must be a whole number up to 9223372036854775807",
		`{"events": 99999999999999999999}`: "1:12: events: 99999999999999999999: must be a whole number up to 9223372036854775807",
		`{"segments": [{"vni": -1}]}`:      "1:23: segments[0].vni: -1: must be 0 to 16777215",
		`{"segments": [{}]}`:               "1:15: segments[0].vni: required",
		`{"vrfs": [{"name": "v", "routes": [{"prefix": "::/0", "via": [{}]}]}]}`: "1:63: vrfs[0].routes[0].via[0].segment: required",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What is parsed, written and parsed again is the same: the effective settings can be used
// as a file.
func TestParseAgain(t *testing.T) {
	files, _ := filepath.Glob("../cmd/vxswitchd/configs/*/*.json")
	if len(files) == 0 {
		t.Fatal("there are no configurations")
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		section, _, _ := strings.Cut(filepath.Base(filepath.Dir(f)), "-")
		if slices.Contains([]string{"bgp", "calico", "evpn", "flannel"}, section) && strings.Contains(string(text), `"`+section+`":`) {
			continue // a section of the program, whose tests read it
		}
		a, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		again, err := json.Marshal(a)
		must(t, err)
		b, err := Parse(again)
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %v\n%s", f, err, again)
		}
		var c Config
		if err := json.Unmarshal(again, &c); err != nil || !reflect.DeepEqual(*a, c) {
			t.Errorf("%s: encoding/json: %v\n%s", f, err, again)
		}
	}
}

// encoding/json takes what Parse does, but for comments, and leaves no key out silently.
func TestUnmarshalJSON(t *testing.T) {
	c := Config{Control: Control{Mode: "0600"}}
	for text, want := range map[string]string{
		`{"segments": [{"vni": 1, "agein": "1s"}]}`: "1:26: segments[0].agein: unknown key; allowed are ",
		`{"segments": [{"vni": 1, "ageing": 1}]}`:   "1:36: segments[0].ageing: 1: must be a duration such as 300s",
	} {
		var errs setting.Errors
		if err := json.Unmarshal([]byte(text), &c); !errors.As(err, &errs) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if !reflect.DeepEqual(c, Config{Control: Control{Mode: "0600"}}) {
		t.Errorf("an error has changed it: %+v", c)
	}
	if err := json.Unmarshal([]byte(`{"segments": [{"vni": 1, "ageing": "0s"}]}`), &c); err != nil || c.Segments[0].Ageing >= 0 {
		t.Errorf("%v, %+v", err, c)
	}
}

// asText returns a configuration as a file.
func asText(c *Config) []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return b
}

// FuzzParse: what is no configuration is told where, inside the text; what is one is the same
// when it is written and read again.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../cmd/vxswitchd/configs/*/*.json")
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text)
		}
	}
	f.Add([]byte(`{"segments":[{"vni":1,"flood":["10.0.0.2"],"members":[{"port":"a"}]}],"ports":[{"name":"a"}]}`))
	f.Add([]byte(`{"tunnels":[{"name":"a","type":"gpe","local":"::1","ttl":"inherit"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if (c == nil) == (err == nil) {
			t.Fatal("neither, or both")
		}
		var errs setting.Errors
		if err != nil && (!errors.As(err, &errs) || len(errs) == 0) {
			t.Fatalf("%T", err)
		}
		lines := bytes.Split(text, []byte("\n"))
		for _, e := range errs {
			if e.Line < 0 || e.Line > len(lines) || e.Line > 0 && (e.Column < 1 || e.Column > len(lines[e.Line-1])+1) || e.Reason() == "" {
				t.Fatalf("%d:%d of %d lines: %v", e.Line, e.Column, len(lines), e)
			}
		}
		if err != nil {
			return
		}
		again, err := json.Marshal(c)
		must(t, err)
		d, err := Parse(again)
		if err != nil {
			t.Fatalf("%v: %s", err, again)
		}
		if more, err := json.Marshal(d); err != nil || !bytes.Equal(more, again) {
			t.Fatalf("%v: %s became %s", err, again, more)
		}
	})
}

// A text made to be hard costs what its length does.
func TestParseHostile(t *testing.T) {
	for name, text := range map[string]string{
		"deep lists":      strings.Repeat("[", 3<<20),
		"deep objects":    strings.Repeat(`{"a":`, 1<<20),
		"deep, strings":   strings.Repeat(`["]",`, 4<<20),
		"deep, quotes":    strings.Repeat(`["\"]",`, 4<<20),
		"deep, comments":  strings.Repeat(`[/*]*/`, 4<<20),
		"deep, lines":     strings.Repeat("[//]\n", 4<<20),
		"deep, keys":      strings.Repeat(`{"}":`, 4<<20),
		"shut first":      `/*` + strings.Repeat("]", 4<<20) + `*/` + strings.Repeat("[", 4<<20),
		"many errors":     `{"segments": [` + strings.TrimSuffix(strings.Repeat("0,", 100_000), ",") + `]}`,
		"many keys":       `{` + strings.TrimSuffix(strings.Repeat(`"a":0,`, 100_000), ",") + `}`,
		"many references": `{"segments": [{"vni": 1, "members": [` + strings.TrimSuffix(strings.Repeat(`{"port":"a"},`, 50_000), ",") + `]}]}`,
	} {
		begun := time.Now()
		_, err := Parse([]byte(text))
		var errs setting.Errors
		if !errors.As(err, &errs) || len(errs) > conf.MaxErrors+1 || time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %d errors after %v", name, len(errs), time.Since(begun))
		}
		if last := errs[len(errs)-1]; len(errs) > conf.MaxErrors && !strings.HasPrefix(last.Reason(), "and ") {
			t.Errorf("%s: the last is %v", name, last)
		}
	}
}
