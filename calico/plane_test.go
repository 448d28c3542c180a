package calico

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/setting"
)

// What changes in the datastore, changes here: nodes, blocks, borrowed addresses, pools, peers, and who we are.
func TestFollow(t *testing.T) {
	r := newRig(t)
	r.start()
	r.wait("rows", r.rows, initialRows)
	r.wait("peers", r.peers, initialPeers)

	r.block("10.65.2.0/26", "b", "b", "c", "a")
	r.wait("a borrowed address", r.rows, "10.65.2.0/26 192.0.2.2, 10.65.2.1/32 192.0.2.3, 10.65.3.0/26 192.0.2.3")
	r.wait("one that we have borrowed", r.peers, "192.0.2.2 as 64512, 192.0.2.3 as 64512 [10.65.1.0/26 10.65.2.2/32]")

	r.unset(blockKey("10.65.2.0/26"))
	r.put("nodes/c", value("Node", "c", `{"bgp":{"ipv4Address":"192.0.2.33/24","asNumber":65003},"ipv4VXLANTunnelAddr":"10.65.3.0"}`))
	r.wait("a node has moved", r.rows, "10.65.3.0/26 192.0.2.33")
	r.wait("peers", r.peers, "192.0.2.2 as 64512, 192.0.2.33 as 65003 [10.65.1.0/26]")

	r.put("bgppeers/tor", value("BGPPeer", "tor", `{"peerIP":"192.0.2.254","asNumber":65100,"nodeSelector":"all()"}`))
	r.put("bgpconfigurations/default", value("BGPConfiguration", "default", `{"asNumber":65000,"nodeToNodeMeshEnabled":false}`))
	r.wait("another AS, and no mesh", r.peers, "192.0.2.254 as 65100 [10.65.1.0/26]")

	r.put("ippools/default", value("IPPool", "default", `{"cidr":"10.65.0.0/16","vxlanMode":"Never","ipipMode":"Always","natOutgoing":true}`))
	r.wait("a pool that needs another segment", r.rows, "")
	r.wait("problems", func() string { return fmt.Sprint(r.plane.Status().Problems) },
		"[ippools/default: is left out: spec.ipipMode needs a segment for IP-in-IP here ippools/default: spec.natOutgoing is not carried: packets to the outside keep the address of the workload]")

	r.put("ippools/default", value("IPPool", "default", `{"cidr":"10.65.0.0/16","vxlanMode":"Always"}`))
	r.wait("the pool as before", r.rows, "10.65.3.0/26 192.0.2.33")
	r.put("nodes/c", "junk")
	r.wait("a wrong value", r.rows, "")
	if list := fmt.Sprint(r.plane.Status().Problems); !strings.Contains(list, "nodes/c: must be JSON: invalid character") || !strings.Contains(list, "nodes/c: the datastore has no such node") {
		t.Errorf("problems %s", list)
	}

	r.del("nodes/a")
	r.wait("we are no node", r.peers, "none")
	r.put("nodes/a", value("Node", "a", `{"bgp":{"ipv4Address":"192.0.2.1/24"},"ipv4VXLANTunnelAddr":"10.65.1.0"}`))
	r.wait("we are one", r.peers, "192.0.2.254 as 65100 [10.65.1.0/26]")
}

// While etcd is away, everything goes on as it was. What has changed meanwhile comes when it is back, also if etcd has forgotten the
// changes themselves.
func TestAway(t *testing.T) {
	r := newRig(t)
	r.start()
	r.wait("rows", r.rows, initialRows)
	r.wait("peers", r.peers, initialPeers)
	for name, away := range map[string]func(){"cut": r.proxy.Cut, "silent": r.proxy.Silence} {
		t.Run(name, func(t *testing.T) {
			away()
			r.wait("stale", r.stale, "true")
			st := r.plane.Status()
			if st.LastError == "" || r.rows() != initialRows || r.peers() != initialPeers {
				t.Errorf("%q; rows %s; peers %s", st.LastError, r.rows(), r.peers())
			}
			r.unset(blockKey("10.65.3.0/26"))
			r.block("10.65.4.0/26", "b")
			r.etcd.Compact(t)
			r.proxy.Heal()
			r.wait("stale", r.stale, "false")
			r.wait("rows", r.rows, "10.65.2.0/26 192.0.2.2, 10.65.4.0/26 192.0.2.2")
			r.unset(blockKey("10.65.4.0/26"))
			r.block("10.65.3.0/26", "c")
			r.wait("rows", r.rows, initialRows)
		})
	}
}

// etcd starts again, with what it had.
func TestRestart(t *testing.T) {
	r := newRig(t)
	r.start()
	r.wait("rows", r.rows, initialRows)
	r.etcd.Stop()
	r.wait("stale", r.stale, "true")
	if r.rows() != initialRows {
		t.Errorf("rows %s", r.rows())
	}
	r.etcd.Start()
	r.block("10.65.4.0/26", "c")
	r.wait("rows", r.rows, initialRows+", 10.65.4.0/26 192.0.2.3")
}

// A cluster of confd's tests by way of etcd, list and watch: node kube-node-1 becomes kube-master's route reflector's client.
func TestConfd(t *testing.T) {
	r := newRig(t)
	for key, v := range confd(t, "explicit_peering/route_reflector") {
		r.set(key, string(v))
	}
	r.put("nodes/a", value("Node", "a", `{"bgp":{"ipv4Address":"10.192.0.77/16"}}`))
	r.start()
	r.wait("peers", r.peers, "10.192.0.2 as 64532 [10.65.1.0/26]")
	r.put("bgppeers/bgppeer-other-nodes", value("BGPPeer", "bgppeer-other-nodes", `{"nodeSelector":"has(routeReflector)","peerSelector":"has(rack)"}`))
	r.wait("peers", r.peers, " [10.65.1.0/26]")
}

// Many keys are read in pages, and one in another page than the first changes.
func TestPages(t *testing.T) {
	r := newRig(t)
	for i := range 450 {
		r.block(fmt.Sprintf("10.65.%d.%d/26", 100+i/4, i%4*64), "b")
	}
	r.start()
	count := func() string { return fmt.Sprint(r.plane.Status().Rows) }
	r.wait("rows", count, "452")
	r.unset(blockKey("10.65.212.0/26"))
	r.wait("rows", count, "451")
	if st := r.plane.Status(); st.Resources["blocks"] != 452 || len(st.Problems) > 0 {
		t.Errorf("%+v", st)
	}
}

func TestStatus(t *testing.T) {
	r := newRig(t)
	r.start()
	r.wait("rows", r.rows, initialRows)
	st := r.plane.Status()
	check.Equal(t, "addresses", fmt.Sprint(st.Addresses), "[192.0.2.1/24]")
	check.Equal(t, "tunnels", fmt.Sprint(st.Tunnels), "[10.65.1.0]")
	check.Equal(t, "MAC", st.MAC.String(), "66:86:f7:e4:37:fa") // sha1("a")
	check.Equal(t, "resources", fmt.Sprint(st.Resources), "map[affinities:1 bgpconfigurations:2 bgpfilters:0 bgppeers:0 blocks:3 felixconfigurations:0 ippools:1 nodes:3]")
	check.Equal(t, "rows", st.Rows, 2)
	check.OK(t, st.RowErr)
	if !st.Stale.IsZero() || st.LastError != "" || st.BGPErr != nil {
		t.Errorf("%+v", st)
	}
}

// Without an etcd, Run goes on, and says so.
func TestNoEtcd(t *testing.T) {
	r := newRig(t)
	r.proxy.Cut()
	r.start()
	r.wait("an error", func() string { return fmt.Sprint(r.plane.Status().LastError != "") }, "true")
	if st := r.plane.Status(); time.Since(st.Stale) > time.Hour || st.BGP != nil || st.Rows != 0 {
		t.Errorf("%+v", st)
	}
	r.proxy.Heal()
	r.wait("rows", r.rows, initialRows)
}

// New settings take effect while a Plane runs, also those of etcd; another node needs another Plane.
func TestConfigure(t *testing.T) {
	r := newRig(t)
	r.start()
	r.wait("rows", r.rows, initialRows)
	r.wait("peers", r.peers, initialPeers)
	before := r.plane.current()
	next := setting.Clone(r.plane.cfg)

	next.VXLAN.Segment = 4097
	check.OK(t, r.plane.Configure(&next))
	vni := func() string {
		for row := range r.node.Plane().Rows(DefaultOwner) {
			return fmt.Sprint(row.(control.Prefix).Via.VNI)
		}
		return ""
	}
	r.wait("another segment", vni, "4097")
	check.True(t, r.plane.current() == before, "sessions began anew")

	away := newRig(t)
	away.block("10.65.9.0/26", "c")
	next.Etcd.Endpoints = []string{away.etcd.URL}
	check.OK(t, r.plane.Configure(&next))
	r.wait("another etcd", r.rows, initialRows+", 10.65.9.0/26 192.0.2.3")

	for field, edit := range map[string]func(c *Config){"Node": func(c *Config) { c.Node = "b" }, "NoBGP": func(c *Config) { c.NoBGP, c.Listen = true, nil },
		"Workloads": func(c *Config) { c.Workloads.Prefixes = []string{"cali"} }} {
		other := setting.Clone(next)
		edit(&other)
		check.ErrorHas(t, r.plane.Configure(&other), "calico: Config."+field+": cannot change while the Plane runs")
		check.True(t, next.Restarts(&other), "%s does not restart", field)
	}
	next.VRF = ""
	check.ErrorHas(t, r.plane.Configure(&next), `calico: Config.VRF: "": must be the name of a VRF`)
	check.Equal(t, "rows", r.rows(), initialRows+", 10.65.9.0/26 192.0.2.3")
}

// With a password that cannot be read yet the datastore is away, and followed as soon as it can.
func TestPasswordFile(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(t.TempDir(), "password")
	for _, line := range []string{"user add root:secret", "role add root", "user grant-role root root", "user add reader:pass", "role add all", "user grant-role reader all",
		"role grant-permission all read --prefix=true /calico/", "auth enable"} {
		r.etcd.Ctl(t, strings.Fields(line)...)
	}
	r.startWith(func(c *Config) { c.Etcd.Username, c.Etcd.PasswordFile = "reader", file })
	r.wait("an error", func() string { return r.plane.Status().LastError }, "etcd: password: "+file+": no such file or directory")
	check.OK(t, os.WriteFile(file, []byte("pass\n"), 0o600))
	r.wait("rows", r.rows, initialRows)
}
