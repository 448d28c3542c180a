package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// TestFlows: with "datapath": "kernel" the kernel carries TCP; it is in the tables and in the counters, a capture has all frames,
// and a reload to "user" ends it, under traffic.
func TestFlows(t *testing.T) {
	n := netns.New(t)
	a, b := newSystem(t, n, "a"), n.Host("b")
	n.Link(a.Host, "10.0.0.1/24", b, "10.0.0.2/24")
	b.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.7.2/24", Keep: true, Args: []string{"noudpcsum"}})
	file := func(datapath string) string {
		return strings.ReplaceAll(`{
			"tunnels": [{"name": "vx", "local": "10.0.0.1"}],
			"ports": [{"name": "tap0", "mtu": 1450}],
			"segments": [{"vni": 100, "tunnel": "vx", "flood": ["10.0.0.2"], "members": [{"port": "tap0"}]}],
			"control": {"socket": "SOCKET"},
			"datapath": "DATAPATH"
		}`, "DATAPATH", datapath)
	}
	a.write(file("kernel"))
	a.run()
	a.Addr("tap0", "192.168.7.1/24")
	flows := func() (f api.Flows) {
		must(t, json.Unmarshal([]byte(a.ctl("-json flows")), &f))
		return f
	}
	a.Until("two flows", func() bool { a.Ping("192.168.7.2", 20); return len(flows().Flows) == 2 })
	before := flows()
	a.IPerf(b, "192.168.7.2", "-n", "100M")
	a.IPerf(b, "192.168.7.2", "-n", "100M", "-R")
	f := flows()
	if got := f.Carried.Bytes - before.Carried.Bytes; f.Datapath != "kernel" || got < 180e6 {
		t.Errorf("%d bytes carried: %+v", got, f)
	}
	if _, peer := a.counters(100); peer.RxBytes+peer.TxBytes < 180e6 {
		t.Errorf("the tunnel has counted %+v", peer)
	}
	table := a.ctl("flows")
	for _, want := range []string{"tap0  10.0.0.2:4789", "10.0.0.2:4789  tap0", "datapath kernel"} {
		if !strings.Contains(strings.Join(strings.Fields(table), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}

	// While somebody watches, all frames are the switch's.
	out := make(chan string)
	go func() { out <- a.ctl("capture port tap0 -w /dev/null -c 40 icmp") }()
	a.Until("nothing is carried while there is a capture", func() bool { return len(flows().Flows) == 0 })
	a.Ping("192.168.7.2", 20)
	t.Log(<-out)
	a.Until("two flows again", func() bool { a.Ping("192.168.7.2", 20); return len(flows().Flows) == 2 })

	ping := a.Start("ping", "-n", "-i", "0.01", "-c", "300", "192.168.7.2")
	a.write(file("user"))
	a.ctl("reload")
	if f := flows(); f.Datapath != "user" || len(f.Flows) != 0 {
		t.Errorf("%+v", f)
	}
	a.write(file("auto"))
	a.ctl("reload")
	a.Until("flows of auto", func() bool { return len(flows().Flows) == 2 })
	if err := ping.Wait(); err != nil || !strings.Contains(ping.Output(), " 0% packet loss") {
		t.Errorf("%v\n%s", err, ping.Output())
	}
}

// TestRoutedFlows: what a gateway routes is carried, both ways, and shown with the next hop.
func TestRoutedFlows(t *testing.T) {
	n := netns.New(t)
	a, b := newSystem(t, n, "a"), n.Host("b")
	n.Link(a.Host, "10.0.0.1/24", b, "10.0.0.2/24")
	b.VXLAN("vx0", netns.VXLAN{ID: 200, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.8.2/24", Keep: true, Args: []string{"noudpcsum"}})
	a.write(`{
		"tunnels": [{"name": "vx", "local": "10.0.0.1"}],
		"ports": [{"name": "tap0", "mtu": 1450}],
		"segments": [
			{"vni": 100, "members": [{"port": "tap0"}], "gateway": {"vrf": "red", "addresses": ["192.168.7.254/24"], "mac": "02:00:00:00:01:fe"}},
			{"vni": 200, "tunnel": "vx", "flood": ["10.0.0.2"], "gateway": {"vrf": "red", "addresses": ["192.168.8.254/24"], "mac": "02:00:00:00:02:fe"}}
		],
		"vrfs": [{"name": "red"}],
		"control": {"socket": "SOCKET"},
		"datapath": "kernel"
	}`)
	a.run()
	a.Addr("tap0", "192.168.7.1/24")
	a.Route("192.168.8.0/24", "via", "192.168.7.254")
	b.Route("192.168.7.0/24", "via", "192.168.8.254")
	flows := func() (f api.Flows) {
		must(t, json.Unmarshal([]byte(a.ctl("-json flows")), &f))
		return f
	}
	a.Until("two flows", func() bool { a.Ping("192.168.8.2", 20); return len(flows().Flows) == 2 })
	before := flows().Carried.Bytes
	a.IPerf(b, "192.168.8.2", "-n", "100M")
	if n := flows().Carried.Bytes - before; n < 90e6 {
		t.Errorf("%d bytes carried: %+v", n, flows())
	}
	table := strings.Join(strings.Fields(a.ctl("flows")), " ")
	for _, want := range []string{"02:00:00:00:01:fe tap0 10.0.0.2:4789", "192.168.7.1 192.168.8.2 vni 200 mac " + b.MAC("vx0"), "192.168.8.2 192.168.7.1 vni 100 mac " + a.MAC("tap0")} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	if ttl := a.PingTTL("192.168.8.2"); ttl != 63 {
		t.Errorf("TTL %d", ttl)
	}
}
