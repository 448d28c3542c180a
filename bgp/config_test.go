package bgp

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/setting"
)

func good() *Config {
	c := settings()
	c.Listen = []netip.Addr{addr("10.0.0.1")}
	c.Peers = []Peer{
		{Addr: addr("10.0.0.2"), AS: 64512, Client: true, Hold: 9 * time.Second, Retry: 5 * time.Second, Password: "x"},
		{Prefix: prefix("10.0.1.0/24"), AS: 64513, OwnAS: 1},
		{Addr: addr("fd00::2"), AS: 64514, Local: addr("fd00::1"), BFD: &BFD{}, GracefulRestart: true},
	}
	return c
}

// Errors name the setting, its value, and what is allowed.
func TestCheck(t *testing.T) {
	check.OK(t, good().Check())
	check.ErrorHas(t, (*Config)(nil).Check(), "bgp: Config.AS: 0: must be 1 to", "RouterID: an IPv4 address is required")
	check.OK(t, (&Config{AS: 1, RouterID: addr("1.2.3.4"), VRF: "v"}).Check())
	for want, edit := range map[string]func(c *Config){
		`bgp: Config.AS: 0: must be 1 to 4294967295`:                                          func(c *Config) { c.AS = 0 },
		`RouterID: an IPv4 address is required`:                                               func(c *Config) { c.RouterID = netip.Addr{} },
		`RouterID: ::1: must be an IPv4 address other than 0.0.0.0`:                           func(c *Config) { c.RouterID = addr("::1") },
		`VRF: "": must be the name of a VRF`:                                                  func(c *Config) { c.VRF = "" },
		`Segment: 1073741824: must be 0 to`:                                                   func(c *Config) { c.Segment = 1 << 30 },
		`Listen[0]: 224.0.0.1: must be an address of the host`:                                func(c *Config) { c.Listen[0] = addr("224.0.0.1") },
		`Listen[1]: 10.0.0.1: it is in the list twice`:                                        func(c *Config) { c.Listen = append(c.Listen, c.Listen[0]) },
		`Listen[0]: 10.0.0.1: 0.0.0.0 or :: in the list has all addresses`:                    func(c *Config) { c.Listen = append(c.Listen, addr("::"), addr("0.0.0.0")) },
		`Announce[0]: 0.0.0.0/0: must be a block of hosts`:                                    func(c *Config) { c.Announce[0] = prefix("0.0.0.0/0") },
		`Peers[0].Addr: 10.0.0.1: must be an address of another host`:                         func(c *Config) { c.Peers[0].Addr = addr("10.0.0.1") },
		`Peers[2].Addr: fd00::2: must be an address of another host`:                          func(c *Config) { c.Peers[2].Local = addr("fd00::2") },
		`Listen: an address is required: peers[1] connects to us`:                             func(c *Config) { c.Listen = nil },
		`Addresses[0]: 127.0.0.1: is not valid on a network`:                                  func(c *Config) { c.Addresses[0] = addr("127.0.0.1") },
		`Addresses[1]: 10.0.0.2: there is another address of the family; must be at most one`: func(c *Config) { c.Addresses[1] = addr("10.0.0.2") },
		`Addresses: an address of the family of announce[2], fd65:1::/122, is required`:       func(c *Config) { c.Addresses = c.Addresses[:1] },
		`Routers: 10.0.0.254: requires segment`:                                               func(c *Config) { c.Segment = 0 },
		`Links[0].Segment: 0: must be 1 to`:                                                   func(c *Config) { *c = *twoLinks(); c.Links[0].Segment = 0 },
		`Links[1].Segment: 200: links[0] has it already`:                                      func(c *Config) { *c = *twoLinks(); c.Links[1].Segment = 200 },
		`Links[1].Addresses[2]: 10.0.2.1: there is another`: func(c *Config) {
			*c = *twoLinks()
			c.Links[1].Addresses = append(c.Links[1].Addresses, addr("10.0.2.1"))
		},
		`Links[0].Routers[0]: 127.0.0.1: is not`:                                             func(c *Config) { *c = *twoLinks(); c.Links[0].Routers[0] = addr("127.0.0.1") },
		`Links: each has a segment, addresses and routers of its own`:                        func(c *Config) { c.Links = twoLinks().Links },
		`Links[0].Addresses: an address of the family of announce[2]`:                        func(c *Config) { *c = *twoLinks(); c.Links = c.Links[:1]; c.Peers = nil },
		`Peers[0].Segment: 300: must be the segment of a link`:                               func(c *Config) { c.Peers[0].Segment = 300 },
		`Peers[0].Local: an address of the node is required with nextHopSelf`:                func(c *Config) { c.Peers[0].NextHopSelf = true },
		`Segment: required for ways without a tunnel, which pools[0] has`:                    func(c *Config) { c.Segment = 0 },
		`Pools[0].Prefix: 10.65.0.1/16: must be without host bits, as in 10.65.0.0/16`:       func(c *Config) { c.Pools[0].Prefix = prefix("10.65.0.1/16") },
		`Pools[1].Prefix: 10.65.0.0/16: pools[0] has it already`:                             func(c *Config) { c.Pools[1].Prefix = c.Pools[0].Prefix },
		`Pools[1].Segment: the segment of the tunnel is required with an encapsulation`:      func(c *Config) { c.Pools[1].Segment = 0 },
		`Pools[0].Encapsulation: never: a segment and a tunnel have no use without`:          func(c *Config) { c.Pools[0].Tunnel = "t" },
		`Pools[0].Encapsulation: invalid: must be "never", "ipip" or "vxlan"`:                func(c *Config) { c.Pools[0].Encapsulation = 9 },
		`Pools[0].Encapsulation: never: a mode has no use without an encapsulation`:          func(c *Config) { c.Pools[0].Mode = CrossSubnet },
		`Peers[0].Addr: fe80::1%eth0: is link-local, and sessions are of no interface here`:  func(c *Config) { c.Peers[0].Addr = addr("fe80::1%eth0") },
		`Nodes[0].Address: the address of the node is required`:                              func(c *Config) { c.Nodes[0].Address = netip.Addr{} },
		`Pools[0].Mode: invalid: must be "always" or "cross-subnet"`:                         func(c *Config) { c.Pools[0].Mode = 9 },
		`Nodes[0].Address: 0.0.0.0: is the unspecified address`:                              func(c *Config) { c.Nodes[0].Address = netip.IPv4Unspecified() },
		`Nodes[1].Address: 10.0.0.2: nodes[0] has it already`:                                func(c *Config) { c.Nodes = append(c.Nodes, c.Nodes[0]) },
		`Nodes[0].MAC: ff:ff:ff:ff:ff:ff: must be the MAC of one host`:                       func(c *Config) { c.Nodes[0].MAC = frame.Broadcast },
		`Announce[0]: a prefix such as 10.65.0.0/16 is required`:                             func(c *Config) { c.Announce[0] = netip.Prefix{} },
		`Announce[0]: 127.0.0.0/8: is in 127.0.0.0/8, which is not routed`:                   func(c *Config) { c.Announce[0] = prefix("127.0.0.0/8") },
		`Announce[1]: 10.65.1.0/26: announce[0] is the same`:                                 func(c *Config) { c.Announce[1] = c.Announce[0] },
		`Import[0].Min: 23: must be 24 to 32`:                                                func(c *Config) { c.Import[0].Min = 23 },
		`Import[0].Max: 27: must be 28 to 32`:                                                func(c *Config) { c.Import[0].Max = 27 },
		`Import[0].Action: invalid: must be "accept" or "reject"`:                            func(c *Config) { c.Import[0].Action = 2 },
		`Export[0].Prefix: a prefix such as 10.65.0.0/16 is required`:                        func(c *Config) { c.Export = []Rule{{}} },
		`Underlay[0]: 10.99.0.1/24: must be without host bits, as in 10.99.0.0/24`:           func(c *Config) { c.Underlay = prefixes("10.99.0.1/24") },
		`MaxRoutes: -1: must be`:                                                             func(c *Config) { c.MaxRoutes = -1 },
		`MaxPaths: 65: must be 1 to 64`:                                                      func(c *Config) { c.MaxPaths = 65 },
		`Peers[0].Addr: the address of the peer is required, or a prefix`:                    func(c *Config) { c.Peers[0].Addr = netip.Addr{} },
		`Peers[0].Prefix: 10.0.1.0/24: the peer has an address already`:                      func(c *Config) { c.Peers[0].Prefix = prefix("10.0.1.0/24") },
		`Peers[0].Addr: 0.0.0.0: must be the address of a host`:                              func(c *Config) { c.Peers[0].Addr = netip.IPv4Unspecified() },
		`Peers[0].AS: 0: must be 1 to 4294967295`:                                            func(c *Config) { c.Peers[0].AS = 0 },
		`Peers[0].Client: true: clients of a route reflector are of our AS, 64512`:           func(c *Config) { c.Peers[0].AS = 1 },
		`Peers[0].Local: fd00::1: must be an address of the node, of the family of 10.0.0.2`: func(c *Config) { c.Peers[0].Local = addr("fd00::1") },
		`Peers[0].Hold: 1s: must be full seconds from 3s to 65535s, or 0 for 90s`:            func(c *Config) { c.Peers[0].Hold = time.Second },
		`Peers[0].Retry: 1.5s: must be full seconds from 2s to 1h, or 0 for 2s`:              func(c *Config) { c.Peers[0].Retry = 1500 * time.Millisecond },
		`Peers[0].Password: 81: must be at most 80 bytes`:                                    func(c *Config) { c.Peers[0].Password = strings.Repeat("x", 81) },
		`Peers[0].PasswordFile: "f": the peer has a password already`:                        func(c *Config) { c.Peers[0].PasswordFile = "f" },
		`Peers[0].OwnAS: 11: must be 0 to 10`:                                                func(c *Config) { c.Peers[0].OwnAS = 11 },
		`Peers[0].MaxRoutes: -1: must be`:                                                    func(c *Config) { c.Peers[0].MaxRoutes = -1 },
		`Peers[1].BFD: needs an address in place of a prefix`:                                func(c *Config) { c.Peers[1].BFD = &BFD{} },
		`Peers[2].Local: an address of the node is required with bfd`:                        func(c *Config) { c.Peers[2].Local = netip.Addr{} },
		`Peers[2].BFD.Interval`:                                                              func(c *Config) { c.Peers[2].BFD.Interval = 1 },
		`Peers[2]: "10.0.0.2": peers[0] is the same`:                                         func(c *Config) { c.Peers[2] = c.Peers[0] },
		`Peers[0].Hops: 2: a peer of our AS, 64512, may be any number of hops away`:          func(c *Config) { c.Peers[0].Hops = 2 },
		`Pools[0].Prefix: 0.0.0.0/0: must be a range of addresses of hosts`:                  func(c *Config) { c.Pools[0].Prefix = prefix("0.0.0.0/0") },
		`Pools[1].Prefix: ::/0: must be a range of addresses of hosts`:                       func(c *Config) { c.Pools[1].Prefix = prefix("::/0") },
	} {
		c := good()
		edit(c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	c := good()
	c.Peers, c.Nodes = []Peer{{AS: 1}, {AS: 1}}, []Remote{{MAC: frame.MAC{2}}, {MAC: frame.MAC{2}}}
	if err := c.Check(); strings.Contains(err.Error(), "invalid IP") {
		t.Error(err)
	}
}

// Settings are written and read as JSON, with words.
func TestJSON(t *testing.T) {
	text := check.Must(json.Marshal(good()))(t)
	for _, want := range []string{`"encapsulation":"vxlan"`, `"mode":"cross-subnet"`, `"action":"reject"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: no %s", text, want)
		}
	}
	var c Config
	check.OK(t, json.Unmarshal(text, &c))
	check.Equal(t, "settings", string(check.Must(json.Marshal(&c))(t)), string(text))
	err := json.Unmarshal([]byte(`{"pools": [{"encapsulation": "gre"}]}`), &c)
	if err == nil || !strings.Contains(err.Error(), "must be one of never, ipip, vxlan") {
		t.Error(err)
	}
}

// A password is the first line of its file, and is in no error.
func TestPassword(t *testing.T) {
	c := good()
	c.Peers[0].Password, c.Peers[0].PasswordFile = "", filepath.Join(t.TempDir(), "password")
	for text, want := range map[string]string{"secret\r\nmore": "", "": "the first line has 0 bytes; must have 1 to 80", strings.Repeat("s", 81): "the first line has 81 bytes"} {
		check.OK(t, os.WriteFile(c.Peers[0].PasswordFile, []byte(text), 0o600))
		list, err := c.peers()
		switch {
		case want == "":
			check.OK(t, err)
			check.OK(t, c.CheckFiles())
			check.Equal(t, "password", list[0].Password, "secret")
		case err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sss"):
			t.Errorf("%v, want %s", err, want)
		}
	}
	c.Peers[0].PasswordFile = "nowhere"
	var errs setting.Errors
	if err := c.CheckFiles(); !errors.As(err, &errs) || err.Error() != `bgp: Config.Peers[0].PasswordFile: "nowhere": no such file or directory` {
		t.Error(err)
	}
}

// Settings that a Speaker cannot change need another one, and others do not.
func TestRestarts(t *testing.T) {
	for name, edit := range map[string]func(c *Config){
		"AS": func(c *Config) { c.AS = 1 }, "RouterID": func(c *Config) { c.RouterID = addr("10.0.0.9") }, "Listen": func(c *Config) { c.Listen = nil },
		"Port": func(c *Config) { c.Port = 1790 }, "VRF": func(c *Config) { c.VRF = "w" },
	} {
		next := good()
		if edit(next); !good().Restarts(next) {
			t.Errorf("%s: does not restart", name)
		}
	}
	next := good()
	next.Peers, next.Announce, next.Segment = nil, nil, 0
	check.True(t, !good().Restarts(next), "restarts for peers, blocks and the segment")
}
