package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	vxcalico "github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
	"github.com/vxswitch/vxswitch/node"
)

// A member is a node of a cluster.
type member struct {
	t     *testing.T
	node  *node.Node
	plane *vxcalico.Plane
}

// join runs a Plane of node a until the test ends.
func join(t *testing.T, d *Datastore) *member {
	n := check.Must(node.New(&node.Options{Owners: []string{vxcalico.DefaultOwner}}))(t)
	t.Cleanup(func() { n.Close() })
	p := check.Must(vxcalico.New(n, &vxcalico.Config{
		Node: "a", VRF: "v", VXLAN: vxcalico.Tunnel{Segment: 4096}, NoBGP: true, Workloads: vxcalico.Workloads{Prefixes: []string{"cali"}}, Datastore: d,
	}))(t)
	check.Run(t, p.Run)
	return &member{t, n, p}
}

// rows are the routes of blocks and borrowed addresses.
func (m *member) rows() string {
	var list []string
	for row := range m.node.Plane().Rows(vxcalico.DefaultOwner) {
		x := row.(control.Prefix)
		to := "nobody" // of the node's own blocks
		if x.Via.VTEP.IsValid() {
			to = x.Via.VTEP.Addr().String()
		}
		list = append(list, x.Prefix.String()+" "+to)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// policies are those of the workloads.
func (m *member) policies() string {
	var list []string
	for _, w := range m.plane.Status().Workloads {
		list = append(list, fmt.Sprint(w.Endpoint, w.Policies, w.Closed))
	}
	return strings.Join(list, " ")
}

// stale is the error of a datastore that is away, "" if it is not.
func (m *member) stale() string {
	st := m.plane.Status()
	if st.Stale.IsZero() {
		return ""
	}
	return "stale: " + st.LastError
}

// wait waits until something is as wanted, or contains what is wanted and ends with "...".
func (m *member) wait(what string, f func() string, want string) {
	m.t.Helper()
	got := f()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		part, is := strings.CutSuffix(want, "...")
		if got = f(); got == want || is && strings.Contains(got, part) {
			return
		}
	}
	m.t.Fatalf("%s: %s\nwant %s\nstatus %+v", what, got, want, m.plane.Status())
}

const (
	clusterRows     = "10.65.1.0/26 nobody, 10.65.1.1/32 198.51.100.3, 10.65.2.0/26 192.0.2.2, 10.65.3.0/26 198.51.100.3"
	clusterPolicies = "data/a-k8s-db--0-eth0[globalnetworkpolicies/security.no-bogons networkpolicies/data/knp.default.deny profiles/kns.data] " +
		"shop/a-k8s-web--0-eth0[globalnetworkpolicies/security.no-bogons networkpolicies/shop/front networkpolicies/shop/knp.default.web profiles/kns.shop profiles/ksa.shop.web]"
	withoutWeb = "data/a-k8s-db--0-eth0[globalnetworkpolicies/security.no-bogons networkpolicies/data/knp.default.deny profiles/kns.data] " +
		"shop/a-k8s-web--0-eth0[globalnetworkpolicies/security.no-bogons networkpolicies/shop/front profiles/kns.shop profiles/ksa.shop.web]"

	webPolicy = "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies/web"
	blockPath = "/apis/crd.projectcalico.org/v1/ipamblocks/10-65-3-0-26"
)

// object returns that of a manifest.
func objectOf(t *testing.T, kind, name string) map[string]any {
	t.Helper()
	for _, o := range documents(t, read(t, "cluster.yaml")) {
		if o["kind"] == kind && o["metadata"].(map[string]any)["name"] == name {
			return o
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

// While the API server is away everything stays as it was; what has happened meanwhile comes when it is back.
func TestAway(t *testing.T) {
	c := newCluster(t, read(t, "cluster.yaml"))
	proxy := etcdlab.NewProxy(t, c.fake.web.Listener.Addr().String())
	m := join(t, c.datastore("", proxy.Addr))
	away(c, m, proxy.Cut, proxy.Heal, "...")
}

// away has the API server be away for a while.
func away(c *cluster, m *member, down, up func(), why string) {
	m.t.Helper()
	m.wait("rows", m.rows, clusterRows)
	m.wait("policies", m.policies, clusterPolicies)
	m.wait("stale", m.stale, "")
	down()
	m.wait("stale", m.stale, "stale: kube: "+why)
	if m.rows() != clusterRows || m.policies() != clusterPolicies {
		m.t.Errorf("rows %s; policies %s", m.rows(), m.policies())
	}
	up()
	m.wait("stale", m.stale, "")
	m.wait("rows", m.rows, clusterRows)
	down()
	m.wait("stale", m.stale, "stale: kube: "+why)
	if c.fake != nil {
		c.del(webPolicy)
		c.del(blockPath)
	}
	up()
	if c.fake == nil {
		c.del(webPolicy)
		c.del(blockPath)
	}
	m.wait("policies", m.policies, withoutWeb)
	m.wait("rows", m.rows, "10.65.1.0/26 nobody, 10.65.1.1/32 198.51.100.3, 10.65.2.0/26 192.0.2.2")
	c.put(objectOf(m.t, "NetworkPolicy", "web"))
	c.put(objectOf(m.t, "IPAMBlock", "10-65-3-0-26"))
	m.wait("policies", m.policies, clusterPolicies)
	m.wait("rows", m.rows, clusterRows)
}

// What the API server does not allow is named in the status, and everything stays as it was.
func TestDenied(t *testing.T) {
	c := newCluster(t, read(t, "cluster.yaml"))
	m := join(t, c.datastore("", ""))
	away(c, m, func() { c.fake.say("pods", 403) }, func() { c.fake.say("pods", 0) }, "pods: pods is refused to this user")
}

// Without permission from the beginning nothing is done, and workloads are closed.
func TestDeniedFromTheBeginning(t *testing.T) {
	c := newCluster(t, read(t, "cluster.yaml"))
	c.fake.say("tiers", 403)
	m := join(t, c.datastore("", ""))
	m.wait("stale", m.stale, "stale: kube: tiers.crd.projectcalico.org: tiers is refused to this user")
	if m.rows() != "" || m.policies() != "" {
		t.Errorf("rows %s; policies %s", m.rows(), m.policies())
	}
	c.fake.say("tiers", 0)
	m.wait("rows", m.rows, clusterRows)
	m.wait("policies", m.policies, clusterPolicies)
}

// When the API server has forgotten the changes, what differs is done, and nothing is stale.
func TestForgottenByPlane(t *testing.T) {
	c := newCluster(t, read(t, "cluster.yaml"))
	m := join(t, c.datastore("", ""))
	m.wait("rows", m.rows, clusterRows)
	c.fake.forget(blockPath)
	m.wait("rows", m.rows, "10.65.1.0/26 nobody, 10.65.1.1/32 198.51.100.3, 10.65.2.0/26 192.0.2.2")
	if s := m.stale(); s != "" {
		t.Error(s)
	}
}

// A policy of administrators is one that cannot be read: no workload has traffic while there is one.
func TestNotCarried(t *testing.T) {
	c := newCluster(t, read(t, "cluster.yaml"))
	m := join(t, c.datastore("", ""))
	m.wait("policies", m.policies, clusterPolicies)
	c.apply("apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: {name: x}\nspec: {}\n")
	m.wait("problems", func() string { return fmt.Sprint(m.plane.Status().Problems) }, "globalnetworkpolicies/object:clusternetworkpolicies:x: ClusterNetworkPolicy is not carried...")
	for _, w := range m.plane.Status().Workloads {
		if w.Closed == "" {
			t.Errorf("%+v: not closed", w)
		}
	}
}
