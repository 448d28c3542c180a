package main

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
)

// quietCalico are resources of a cluster of nodes a and b. Nobody is at the address of b.
func quietCalico(port int) map[string]string {
	spec := func(s string) string { return `{"spec":` + s + `}` }
	return map[string]string{
		"nodes/a":                   spec(`{"bgp":{"ipv4Address":"192.0.2.1/24"},"ipv4VXLANTunnelAddr":"10.65.1.0"}`),
		"nodes/b":                   spec(`{"bgp":{"ipv4Address":"192.0.2.2/24"},"ipv4VXLANTunnelAddr":"10.65.2.0"}`),
		"ippools/default":           spec(`{"cidr":"10.65.0.0/16","vxlanMode":"Always","natOutgoing":true}`),
		"bgpconfigurations/default": spec(`{"asNumber":64512}`),
		"bgpconfigurations/node.a":  spec(fmt.Sprintf(`{"listenPort":%d}`, port)),
	}
}

// The section in the API, metrics and health, while the datastore is followed, away, and not read yet.
func TestCalicoQuiet(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	for name, value := range quietCalico(freePort(t)) {
		s.Ctl(t, "put", "--", "/calico/resources/v3/projectcalico.org/"+name, value)
	}
	for _, node := range []string{"a", "b"} {
		block := map[string]string{"a": "10.65.1.0", "b": "10.65.2.0"}[node]
		s.Ctl(t, "put", "--", "/calico/ipam/v2/assignment/ipv4/block/"+block+"-26", fmt.Sprintf(`{"cidr":"%s/26","affinity":"host:%s","allocations":[],"attributes":[]}`, block, node))
	}
	section := `"calico": {"node": "a", "vrf": "red", "vxlan": {"segment": 10}, "listen": ["127.0.0.1"], "etcd": {"endpoints": ["` + s.URL + `"], "timeout": "2s", "keepAlive": "500ms"}}, "control"`
	text := strings.Replace(basic(t), `"control"`, section, 1)
	r, addr := withMetricsOf(t, text, "127.0.0.1:0")
	until := func(path, pattern string) {
		t.Helper()
		is := regexp.MustCompile(pattern)
		wait(t, path+": "+pattern, func() (string, bool) {
			_, text := r.ask("GET", path, "")
			return text, is.MatchString(text)
		})
	}
	until("/v1/calico", `^{"state":"running","since":"[^"]+","node":"a","vrf":"red","as":64512,"routerID":"192.0.2.1","addresses":\["192.0.2.1/24"\],"tunnels":\["10.65.1.0"\],"macs":\["66:86:f7:e4:37:fa"\],`+
		`"resources":{"affinities":0,"bgpconfigurations":2,"bgpfilters":0,"bgppeers":0,"blocks":2,"felixconfigurations":0,"ippools":1,"nodes":2},"peers":1,"established":0,"routes":1,`+
		`"problems":\[{"resource":"nodes/a","why":"tunnel \\"vx\\" takes packets for workloads from hosts that are no nodes; its peers should be \\"listed\\""},{"resource":"nodes/a","why":"other nodes send to 66:86:f7:e4:37:fa, and the gateway of segment 10 has the MAC 02:00:00:00:ff:10"},{"resource":"ippools/default","why":"spec.natOutgoing [^"]+"}\]}`)
	until("/v1/bgp", `"state":"running",.*"as":64512,"routerID":"192.0.2.1","vrf":"red","peers":1,"established":0,"announced":\["10.65.1.0/26"\],"received":0,`)
	until("/v1/bgp/peers", `^\[{"address":"192.0.2.2","as":64512,`)
	until("/v1/bgp/routes", `^\[{"prefix":"10.65.1.0/26","nextHop":"192.0.2.1"}\]`)
	metric := func(pattern string) {
		t.Helper()
		is := regexp.MustCompile(`(?m)^vxswitch_` + pattern + "$")
		wait(t, pattern, func() (string, bool) {
			_, all := getMetrics(t, addr, "/metrics")
			return all, is.MatchString(all)
		})
	}
	for _, want := range []string{`calico_ready 1`, `calico_stale_seconds 0`, `calico_resources{kind="blocks"} 2`, `calico_routes 1`, `calico_workloads{state="closed"} 0`, `calico_problems 3`, `bgp_up 1`, `bgp_peer_up{peer="192.0.2.2"} 0`, `bgp_announced_routes 1`} {
		metric(regexp.QuoteMeta(want))
	}
	_, metrics := getMetrics(t, addr, "/metrics")
	if problems, err := promlint.New(strings.NewReader(metrics)).Lint(); len(problems) > 0 || err != nil {
		t.Errorf("%v %v", problems, err)
	}
	health := func(status int, begins string) {
		t.Helper()
		wait(t, "healthz: "+begins, func() (string, bool) {
			is, text := getMetrics(t, addr, "/healthz")
			return text, is == status && strings.HasPrefix(text, begins)
		})
	}
	health(http.StatusOK, "ok")

	s.Stop()
	until("/v1/calico", `^{"state":"stale","since":"[^"]+","error":"etcd: .*"routes":1,`)
	metric(`calico_stale_seconds [^0].*`)
	metric(`calico_ready 1`)
	health(http.StatusOK, "ok")

	r.write(strings.Replace(text, `"listen": ["127.0.0.1"]`, `"listen": ["192.0.2.99"]`, 1)) // not an address of this host
	must(t, r.reloaded())
	until("/v1/calico", `^{"state":"failed","since":"[^"]+","error":".*192.0.2.99`)
	until("/v1/bgp", `^{"state":"failed",.*"error":".*192.0.2.99`)
	health(http.StatusServiceUnavailable, "calico is failed since ")

	r.write(strings.Replace(text, `"node": "a"`, `"node": "c"`, 1)) // another Plane, and no etcd
	must(t, r.reloaded())
	until("/v1/calico", `^{"state":"starting",.*"node":"c"`)
	metric(`calico_ready 0`)
	health(http.StatusServiceUnavailable, "calico is starting since ")
	s.Start()
	until("/v1/calico", `^{"state":"starting","since":"[^"]+","error":"the datastore has no node \\"c\\"",`)
	if x := get[[]api.BGPRoute](r, "/v1/bgp/routes"); len(x) != 0 {
		t.Errorf("%+v", x)
	}
}

// wait waits until what is said is right.
func wait(t *testing.T, what string, ok func() (said string, right bool)) {
	t.Helper()
	said, right := ok()
	for end := time.Now().Add(time.Minute); !right; said, right = ok() {
		if time.Now().After(end) {
			t.Fatalf("%s\nis %s", what, said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A workload whose port is not there counts nowhere.
func TestCalicoWorkloads(t *testing.T) {
	open, closed := decided([]calico.Workload{{There: true}, {There: true, Closed: "why"}, {There: true, Err: errors.New("no")}, {}, {Closed: "why"}})
	if open != 1 || closed != 2 {
		t.Errorf("%d open, %d closed", open, closed)
	}
}

// reloaded asks for a reload.
func (r *running) reloaded() error {
	r.t.Helper()
	if status, text := r.ask("POST", "/v1/reload", ""); status != http.StatusOK {
		return fmt.Errorf("%d %s", status, text)
	}
	return nil
}
