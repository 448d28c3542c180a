package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// An ADD that fails, at whichever step, leaves nothing behind, has the code that the runtime goes by, and says what to do. A DEL
// after it, as runtimes do, is no error.
func TestFaults(t *testing.T) {
	n, a, _ := newPair(t)
	answer := func(name, result string) string { // an IPAM plugin
		script := "#!/bin/sh\n[ \"$CNI_COMMAND\" = ADD ] || exit 0\ncat >/dev/null\n" + result + "\n"
		must(t, os.WriteFile(filepath.Join(a.bin, name), []byte(script), 0o755))
		return `, "ipam": {"type": "` + name + `"}`
	}
	full := fmt.Sprintf(`, "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "10.1.0.0/30", "rangeStart": "10.1.0.1", "rangeEnd": "10.1.0.1", "gateway": "10.1.0.2"}]]}`, a.data)
	taken := n.Host("taken")
	taken.IP("link", "add", "eth0", "type", "bridge")
	for name, x := range map[string]struct {
		keys string
		pod  string
		code uint
		text string
	}{
		"no segment":       {`, "vni": 999`, "", types.ErrInvalidNetworkConfig, "vni: 999: vxswitchd has no such segment"},
		"no IPAM plugin":   {`, "ipam": {"type": "absent"}`, "", types.ErrInternal, "ipam.type absent: "},
		"IPAM refuses":     {answer("refusing", `echo '{"code": 11, "msg": "none free"}'; exit 1`), "", types.ErrTryAgainLater, "ipam.type refusing: none free"},
		"IPAM has none":    {answer("empty", `echo '{"cniVersion": "1.1.0"}'`), "", types.ErrInternal, "it returned no address"},
		"no namespace":     {"", "-", types.ErrInvalidNetNS, `CNI_NETNS: "/nowhere": must be a network namespace`},
		"name taken":       {"", "taken", types.ErrInvalidEnvironmentVariables, `CNI_IFNAME: "eth0": the container has an interface with this name`},
		"address twice":    {answer("twice", `echo '{"cniVersion": "1.1.0", "ips": [{"address": "10.1.0.7/24"}, {"address": "10.1.0.7/24"}]}'`), "", types.ErrInternal, "ips[1].address: 10.1.0.7/24: file exists"},
		"the node refuses": {`, "vni": 103`, "", types.ErrInternal, "vxswitchd: "},
		"no way":           {answer("astray", `echo '{"cniVersion": "1.1.0", "ips": [{"address": "10.1.0.7/24"}], "routes": [{"dst": "10.2.0.0/16", "gw": "172.16.0.1"}]}'`), "", types.ErrInternal, "routes[0]: 10.2.0.0/16 via 172.16.0.1: network is unreachable"},
	} {
		for _, kind := range []string{veth, tap} {
			t.Run(name+" "+kind, func(t *testing.T) {
				pod := n.Host("f" + portName(name, kind)[2:8])
				rt := at(pod, "eth0")
				switch x.pod {
				case "-":
					rt.NetNS = "/nowhere"
				case "taken":
					rt.NetNS = netns.Folder + "/" + taken.NS
				}
				l := a.network(x.keys + `, "port": "` + kind + `"`)
				_, err := a.tryAdd(l, rt)
				wantCode(t, err, x.code, x.text)
				a.wantNothing("after ADD")
				if got := pod.IP("-o", "link"); strings.Contains(got, "eth0") {
					t.Error(got)
				}
				if x.text != "ipam.type absent: " {
					must(t, a.del(l, rt))
				}
				a.wantNothing("after DEL")
			})
		}
	}

	// The pool is used up.
	l := a.network(full)
	one := at(n.Host("one"), "eth0")
	a.add(l, one)
	two := n.Host("two")
	_, err := a.tryAdd(l, at(two, "eth0"))
	wantCode(t, err, types.ErrInternal, "no IP addresses available")
	if got := two.IP("-o", "link"); strings.Contains(got, "eth0") {
		t.Error(got)
	}

	// A second ADD takes nothing from the first one, whose address is not free.
	before := a.left()
	_, err = a.tryAdd(l, one)
	wantCode(t, err, types.ErrInvalidEnvironmentVariables, "the container has an interface with this name")
	if got := a.left(); !slices.Equal(got, before) {
		t.Errorf("after a second ADD %q, before %q", got, before)
	}
}

// Without the node STATUS has code 50 and ADD code 11, which runtimes try again.
func TestStatus(t *testing.T) {
	n, a, _ := newPair(t)
	l := a.network("")
	must(t, a.status(l))
	wantCode(t, a.status(a.network(`, "vni": 999`)), types.ErrPluginNotAvailable, "vni: 999: vxswitchd has no such segment")
	wantCode(t, a.status(a.network(`, "ipam": {"type": "absent"}`)), types.ErrPluginNotAvailable, "ipam.type absent")
	if err := a.proc.Stop(); err != nil {
		t.Error(err)
	}
	a.proc = nil
	wantCode(t, a.status(l), types.ErrPluginNotAvailable, "no node listens on "+a.socket)
	pod := n.Host("p")
	_, err := a.tryAdd(l, at(pod, "eth0"))
	wantCode(t, err, types.ErrTryAgainLater, "no node listens on "+a.socket)
	a.wantNothing("after ADD without a node")
	must(t, a.del(l, at(pod, "eth0")))
}

// A tunnel that does not run is code 51.
func TestStatusOfTunnel(t *testing.T) {
	n := netns.New(t)
	a := newMachine(t, n, "a", `{
  "tunnels": [{"name": "vx", "underlay": "packet", "bind": "eth0", "local": "10.0.0.1", "prefix": "10.0.0.0/24"}],
  "segments": [{"vni": 100, "tunnel": "vx", "flood": ["10.0.0.2"]}], "control": {"socket": "SOCKET"}}`)
	n.Link(a.Host, "", n.Host("b"), "")
	a.run()
	l := a.network("")
	must(t, a.status(l))
	a.IP("link", "del", "eth0")
	fake.Until(t, "the node has seen it", func() bool { return a.status(l) != nil })
	wantCode(t, a.status(l), types.ErrLimitedConnectivity, "vni 100: tunnel vx: ")
}

// GC deletes what is not valid, of its own network only, with the addresses.
func TestGC(t *testing.T) {
	for _, kind := range []string{veth, tap} {
		t.Run(kind, func(t *testing.T) {
			n, a, _ := newPair(t)
			l, other := a.network(`, "port": "`+kind+`"`), a.networkAs("others", `, "port": "`+kind+`"`)
			p1, p2, p3 := n.Host("p1"), n.Host("p2"), n.Host("p3")
			a.add(l, at(p1, "eth0"))
			kept := a.add(l, at(p2, "eth0"))
			a.add(other, at(p3, "eth0"))
			must(t, a.gc(l, at(p2, "eth0")))
			ports := a.ctl("port")
			for pod, want := range map[string]bool{"p1": false, "p2": true, "p3": true} {
				if strings.Contains(ports, portName(pod, "eth0")) != want {
					t.Errorf("port of %s: want %v\n%s", pod, want, ports)
				}
			}
			if got, _ := filepath.Glob(filepath.Join(a.data, "pods", "10.*")); len(got) != 1 || filepath.Base(got[0]) != addressOf(kept) {
				t.Errorf("addresses %q", got)
			}
			must(t, a.check(l, at(p2, "eth0")))
			must(t, a.gc(l))
			must(t, a.gc(other))
			a.wantNothing("after GC of all")
		})
	}
}

// CHECK says what is not as ADD has left it.
func TestCheck(t *testing.T) {
	n, a, _ := newPair(t)
	l := a.network("")
	for what, x := range map[string]struct {
		do   func(pod *netns.Host, port, addr string)
		text string
	}{
		"address": {func(p *netns.Host, _, addr string) { p.IP("addr", "del", addr+"/16", "dev", "eth0") }, "eth0: has no address 10.1."},
		"route":   {func(p *netns.Host, _, _ string) { p.IP("route", "del", "default") }, "eth0: has no route "},
		"MAC":     {func(p *netns.Host, _, _ string) { p.SetMAC("eth0", "02:00:00:00:00:77") }, "eth0: MAC 02:00:00:00:00:77: must be "},
		"MTU":     {func(p *netns.Host, _, _ string) { p.MTU("eth0", 1400) }, "eth0: MTU 1400: must be 1450"},
		"down":    {func(p *netns.Host, _, _ string) { p.IP("link", "set", "eth0", "down") }, "eth0: is down"},
		"interface": {func(p *netns.Host, _, _ string) {
			p.IP("link", "set", "eth0", "down")
			p.IP("link", "set", "eth0", "name", "eth1")
		}, "eth0: "},
		"port": {func(_ *netns.Host, port, _ string) { a.ctl("port del " + port) }, "vxswitchd has no port "},
		"device": {func(p *netns.Host, port, _ string) {
			p.IP("link", "del", "eth0")
			fake.Until(t, "it is down", func() bool { return strings.Contains(a.ctl("port"), " down ") })
		}, " of vxswitchd is down: "},
	} {
		t.Run(what, func(t *testing.T) {
			pod := n.Host("c" + portName(what, "")[2:8])
			rt := at(pod, "eth0")
			r := a.add(l, rt)
			must(t, a.check(l, rt))
			x.do(pod, portName(pod.Name, "eth0"), addressOf(r))
			if err := a.check(l, rt); err == nil || !strings.Contains(err.Error(), x.text) {
				t.Errorf("%v, want %q", err, x.text)
			}
			must(t, a.del(l, rt))
			a.wantNothing("after DEL")
		})
	}
}

// A pod has several interfaces, in two networks; one has the MAC and the MTU that it is told. Two families are no trouble.
func TestInterfaces(t *testing.T) {
	for _, kind := range []string{veth, tap} {
		t.Run(kind, func(t *testing.T) {
			n, a, b := newPair(t)
			pa, pb := n.Host("pa"), n.Host("pb")
			both := func(m *machine, last string) *libcni.NetworkConfigList {
				return m.networkAs("second", fmt.Sprintf(`, "port": %q, "vni": 101, "mtu": 1400, "capabilities": {"mac": true}, "ipam": {"type": "host-local", "dataDir": %q, "ranges": [
					[{"subnet": "10.5.0.0/24", "rangeStart": "10.5.0.%s", "rangeEnd": "10.5.0.%[3]s"}], [{"subnet": "fd05::/64", "rangeStart": "fd05::%[3]s", "rangeEnd": "fd05::%[3]s"}]],
					"routes": [{"dst": "fd06::/64"}]}`, kind, m.data, last))
			}
			first := a.network(`, "port": "` + kind + `"`)
			a.add(first, at(pa, "eth0"))
			rt := at(pa, "net1")
			rt.CapabilityArgs = map[string]any{"mac": "02:00:00:00:00:aa"}
			la, lb := both(a, "11"), both(b, "12")
			ra := a.add(la, rt)
			b.add(lb, at(pb, "eth0"))
			i := ra.Interfaces[len(ra.Interfaces)-1]
			if i.Name != "net1" || i.Mac != "02:00:00:00:00:aa" || i.Mtu != 1400 || pa.MAC("net1") != i.Mac || len(ra.IPs) != 2 {
				t.Errorf("%+v", i)
			}
			pa.Ping("10.5.0.12", 1)
			pa.Ping("fd05::12", 1)
			if got := pa.IP("-6", "route", "show", "fd06::/64"); !strings.Contains(got, "via fd05::1 dev net1") {
				t.Error(got)
			}
			must(t, a.check(la, rt))
			must(t, a.del(la, rt))
			if got := pa.IP("-o", "link"); strings.Contains(got, "net1") || !strings.Contains(got, "eth0") {
				t.Error(got)
			}
			must(t, a.del(first, at(pa, "eth0")))
			a.wantNothing("at the end")
		})
	}
}

// An address that another pod has had is reached soon: its new owner says that it is here.
func TestAddressMoves(t *testing.T) {
	for _, kind := range []string{veth, tap} {
		t.Run(kind, func(t *testing.T) {
			n, a, b := newPair(t)
			one := func(m *machine) *libcni.NetworkConfigList {
				return m.network(fmt.Sprintf(`, "port": %q, "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "10.1.0.0/16", "rangeStart": "10.1.7.7", "rangeEnd": "10.1.7.7"}]]}`, kind, m.data))
			}
			far := n.Host("far")
			b.add(b.network(""), at(far, "eth0"))
			for _, name := range []string{"p1", "p2", "p3"} {
				p := n.Host(name)
				l := one(a)
				a.add(l, at(p, "eth0"))
				far.Run("ping", "-c", "10", "-i", "0.1", "10.1.7.7") // one answer is enough
				must(t, a.del(l, at(p, "eth0")))
			}
		})
	}
}

// Behind another plugin in a chain, what that has made stays in the result.
func TestChain(t *testing.T) {
	n, a, _ := newPair(t)
	must(t, os.WriteFile(filepath.Join(a.bin, "before"), []byte(`#!/bin/sh
cat >/dev/null
echo '{"cniVersion": "1.1.0", "interfaces": [{"name": "lo", "sandbox": "/x"}], "ips": [{"address": "127.0.0.1/8", "interface": 0}]}'
`), 0o755))
	one := a.network("")
	text := strings.Replace(string(one.Bytes), `"plugins": [`, `"plugins": [{"type": "before"}, `, 1)
	l, err := libcni.NetworkConfFromBytes([]byte(text))
	must(t, err)
	pod := n.Host("p")
	r := a.add(l, at(pod, "eth0"))
	if len(r.Interfaces) != 3 || r.Interfaces[0].Name != "lo" || len(r.IPs) != 2 || *r.IPs[1].Interface != 2 || r.Interfaces[2].Name != "eth0" {
		t.Errorf("%+v", r)
	}
	must(t, a.check(l, at(pod, "eth0")))
	must(t, a.del(l, at(pod, "eth0")))
	a.wantNothing("at the end")
}

// The specification's older versions have the same result in their form.
func TestVersions(t *testing.T) {
	n, a, _ := newPair(t)
	for i, v := range []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		l, err := libcni.NetworkConfFromBytes([]byte(strings.Replace(string(a.network("").Bytes), "1.1.0", v, 1)))
		must(t, err)
		pod := n.Host(fmt.Sprintf("v%d", i))
		r, err := a.tryAdd(l, at(pod, "eth0"))
		must(t, err)
		if r.Version() != v {
			t.Errorf("%s: result of version %s", v, r.Version())
		}
		must(t, a.del(l, at(pod, "eth0")))
	}
	a.wantNothing("at the end")

	// Without a version it is the first.
	conf := filepath.Join(t.TempDir(), "conf")
	must(t, os.WriteFile(conf, []byte(strings.Replace(string(a.network("").Plugins[0].Bytes), "{", `{"name": "pods", `, 1)), 0o644))
	rt := at(n.Host("v"), "eth0")
	out := a.Run("env", "CNI_COMMAND=ADD", "CNI_CONTAINERID="+rt.ContainerID, "CNI_NETNS="+rt.NetNS, "CNI_IFNAME=eth0", "CNI_PATH="+a.bin,
		"sh", "-c", filepath.Join(a.bin, "vxswitch-cni")+" <"+conf)
	if !strings.Contains(out, `"cniVersion": "0.1.0"`) || !strings.Contains(out, `"ip4"`) {
		t.Errorf("%s", out)
	}
}

// A configuration that is wrong is refused with the key, what it has, and what is allowed.
func TestConfig(t *testing.T) {
	for keys, want := range map[string]struct {
		code uint
		text string
	}{
		`"vni": 5`: {},
		`"vni": 5, "args": {}, "capabilities": {}, "runtimeConfig": {"portMappings": []}, "cni.dev/x": 1`: {},
		`"port": "tap"`:             {types.ErrInvalidNetworkConfig, "vni: required"},
		`"vni": 16777216`:           {types.ErrInvalidNetworkConfig, "vni: 16777216: must be 0 to 16777215"},
		`"vni": -1`:                 {types.ErrInvalidNetworkConfig, "vni: -1: must be 0 to 16777215"},
		`"vni": "5"`:                {types.ErrDecodingFailure, `vni: "5": must be a whole number`},
		`"VNI": "5"`:                {types.ErrDecodingFailure, `vni: "5": must be a whole number`},
		`"vni": 1.5`:                {types.ErrDecodingFailure, "vni: 1.5: must be a whole number"},
		`"vni": 5, "VNI": 6`:        {types.ErrUnsupportedField, "VNI: 6: unknown key"},
		`"vni": 5, "port": ["tap"]`: {types.ErrDecodingFailure, `port: ["tap"]: must be a string`},
		`"vni": 5, "name": "` + strings.Repeat("n", 300) + `"`: {types.ErrInvalidNetworkConfig, "name: 300 bytes: must be at most 241"},
		`"vni": 5, "dns": 3`:                                      {types.ErrDecodingFailure, "dns: 3: must be an object"},
		`"vni": 5, "port": "tun"`:                                 {types.ErrInvalidNetworkConfig, `port: "tun": must be veth or tap`},
		`"vni": 5, "mtu": 67`:                                     {types.ErrInvalidNetworkConfig, "mtu: 67: must be 68 to 65521"},
		`"vni": 5, "socket": "sock"`:                              {types.ErrInvalidNetworkConfig, `socket: "sock": must be an absolute path`},
		`"vni": 5, "hairpinMode": true`:                           {types.ErrUnsupportedField, "hairpinMode: true: unknown key; must be one of vni, port"},
		`"vni": 5, "runtimeConfig": {"mac": 1}`:                   {types.ErrDecodingFailure, "runtimeConfig.mac: 1: must be a string"},
		`"vni": 5, "runtimeConfig": {"mac": "01:00:5e:00:00:01"}`: {types.ErrInvalidNetworkConfig, `runtimeConfig.mac: "01:00:5e:00:00:01": must be the MAC of one host`},
		`"vni": 5, "prevResult": {"cniVersion": "9"}`:             {types.ErrDecodingFailure, "prevResult: "},
	} {
		_, err := checkedConfig([]byte(`{"cniVersion": "1.1.0", "name": "x", "type": "vxswitch-cni", ` + keys + `}`))
		if want.text != "" {
			wantCode(t, err, want.code, want.text)
		} else if err != nil {
			t.Errorf("%s: %v", keys, err)
		}
	}
}

// Port names are those of devices, and always the same.
func TestPortName(t *testing.T) {
	seen := map[string]bool{}
	for i := range 20_000 {
		for _, ifname := range []string{"eth0", "net1"} {
			name := portName(fmt.Sprintf("%064x", i), ifname)
			if len(name) != 15 || seen[name] || strings.ToLower(name) != name || name != portName(fmt.Sprintf("%064x", i), ifname) {
				t.Fatalf("%q", name)
			}
			seen[name] = true
		}
	}
	if got := portName("p1", "eth0"); got != "vxg562xwtl2tsg3" {
		t.Errorf("%s: pods of an earlier version have another name", got)
	}
}

// The network of the page is right, and so are its keys.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("README.md")
	must(t, err)
	_, text, _ := strings.Cut(string(page), "```jsonc\n")
	text, rest, _ := strings.Cut(text, "```")
	l, err := libcni.NetworkConfFromBytes([]byte(text))
	must(t, err)
	var all map[string]any
	must(t, json.Unmarshal(l.Plugins[0].Bytes, &all))
	all["name"], all["cniVersion"] = l.Name, l.CNIVersion
	whole, _ := json.Marshal(all)
	if _, err := checkedConfig(whole); err != nil {
		t.Error(err)
	}
	for _, key := range keys[:slices.Index(keys, "cniVersion")] {
		if !strings.Contains(rest, "\n| `"+key+"` |") {
			t.Errorf("%s is not in the page", key)
		}
	}
}

// Started by hand, the program says what it is for, and its example is right.
func TestByHand(t *testing.T) {
	_, text, _ := strings.Cut(usage, "Examples:\n")
	text, _, _ = strings.Cut(text, "\n\n")
	l, err := libcni.NetworkConfFromBytes([]byte(text))
	must(t, err)
	var all map[string]any
	must(t, json.Unmarshal(l.Plugins[0].Bytes, &all))
	all["name"], all["cniVersion"] = "pods", "1.1.0"
	whole, _ := json.Marshal(all)
	if _, err := checkedConfig(whole); err != nil {
		t.Error(err)
	}
	for _, key := range keys[:slices.Index(keys, "cniVersion")] {
		if !strings.Contains(usage, "\n  "+key+" ") {
			t.Errorf("%s is not in the usage", key)
		}
	}
}
