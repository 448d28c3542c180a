package calico

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
	"github.com/vxswitch/vxswitch/node"
)

const v3 = "/calico/resources/v3/projectcalico.org/"

// value is a resource as calicoctl writes it.
func value(kind, name, spec string) string {
	return fmt.Sprintf(`{"kind":%q,"apiVersion":"projectcalico.org/v3","metadata":{"name":%q,"uid":"6d2c0b0a-0000-4000-8000-000000000000","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":%s}`, kind, name, spec)
}

// endpoint is a WorkloadEndpoint of node a with address 10.65.1.i and interface cali-i, as Calico's CNI plugin writes it.
func endpoint(namespace, name, labels string, i int, more string) string {
	return fmt.Sprintf(`{"kind":"WorkloadEndpoint","apiVersion":"projectcalico.org/v3","metadata":{"name":"a-k8s-%[2]s-eth0","namespace":%[1]q,"uid":"6d2c0b0a-0000-4000-8000-00000000000%[4]d","creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"labels":{%[3]s,"projectcalico.org/namespace":%[1]q,"projectcalico.org/orchestrator":"k8s"}},"spec":{"orchestrator":"k8s","workload":"","node":"a","containerID":"c%[4]d","pod":%[2]q,"endpoint":"eth0",`+
		`"ipNetworks":["10.65.1.%[4]d/32"],"profiles":["kns.%[1]s"],"interfaceName":"cali%[4]d","mac":"02:00:00:00:00:0%[4]d"%[5]s}}`, namespace, name, labels, i, more)
}

// A rig is a Plane, and an etcd with its datastore behind a proxy.
type rig struct {
	t     *testing.T
	etcd  *etcdlab.Server
	proxy *etcdlab.Proxy
	to    *clientv3.Client
	node  *node.Node
	plane *Plane
}

// newRig starts etcd with the three nodes of a VXLAN cluster; we are a.
func newRig(t *testing.T) *rig {
	t.Helper()
	s := etcdlab.Start(t, etcdlab.Options{})
	r := &rig{t: t, etcd: s, proxy: etcdlab.NewProxy(t, s.Addr)}
	r.to = check.Must(clientv3.New(clientv3.Config{Endpoints: []string{s.URL}, Logger: zap.NewNop()}))(t)
	t.Cleanup(func() { r.to.Close() })
	r.fill()
	return r
}

// fill writes the resources.
func (r *rig) fill() {
	r.t.Helper()
	for i, name := range []string{"a", "b", "c"} {
		r.put("nodes/"+name, value("Node", name, fmt.Sprintf(`{"bgp":{"ipv4Address":"192.0.2.%[1]d/24"},"ipv4VXLANTunnelAddr":"10.65.%[1]d.0"}`, i+1)))
		r.block(fmt.Sprintf("10.65.%d.0/26", i+1), name)
	}
	r.put("ippools/default", value("IPPool", "default", `{"cidr":"10.65.0.0/16","vxlanMode":"Always","ipipMode":"Never","blockSize":26,"nodeSelector":"all()"}`))
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(r.t) // nobody else gets the port meanwhile, or the test would find it in use
	port := l.Addr().(*net.TCPAddr).Port
	check.OK(r.t, l.Close())
	r.put("bgpconfigurations/node.a", value("BGPConfiguration", "node.a", fmt.Sprintf(`{"listenPort":%d}`, port)))
	r.put("bgpconfigurations/default", value("BGPConfiguration", "default", `{"asNumber":64512,"nodeToNodeMeshEnabled":true}`))
}

// set writes a key, again if etcd is away.
func (r *rig) set(key, value string) {
	r.t.Helper()
	r.retry(func(ctx context.Context) error { _, err := r.to.Put(ctx, key, value); return err })
}

func (r *rig) unset(key string) {
	r.t.Helper()
	r.retry(func(ctx context.Context) error { _, err := r.to.Delete(ctx, key); return err })
}

func (r *rig) retry(f func(context.Context) error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := f(ctx)
	for err != nil && ctx.Err() == nil { // a leader may have gone
		time.Sleep(50 * time.Millisecond)
		err = f(ctx)
	}
	check.OK(r.t, err)
}

func (r *rig) put(key, value string) { r.set(v3+key, value) }
func (r *rig) del(key string)        { r.unset(v3 + key) }

// block writes a block, whose first addresses nodes have.
func (r *rig) block(p, owner string, nodes ...string) {
	var slots, attributes []string
	for i, n := range nodes {
		slots = append(slots, fmt.Sprint(i))
		attributes = append(attributes, fmt.Sprintf(`{"handle_id":"k8s-pod-network.%d","secondary":{"namespace":"default","node":%q,"pod":"p"}}`, i, n))
	}
	r.set(blockKey(p), fmt.Sprintf(
		`{"cidr":%q,"affinity":"host:%s","affinity_claim_time":"2026-01-01T00:00:00Z","allocations":[%s],"unallocated":[],"attributes":[%s],"sequenceNumber":1,"sequenceNumberForAllocation":{},"deleted":false}`,
		p, owner, strings.Join(slots, ","), strings.Join(attributes, ",")))
	r.set(resource.Key{Kind: resource.KindAffinity, Name: p}.Path(owner), `{"state":"confirmed","deleted":false}`)
}

func blockKey(p string) string { return resource.Key{Kind: resource.KindBlock, Name: p}.Path("") }

// start makes a node and runs a Plane, until the test ends.
func (r *rig) start() {
	r.t.Helper()
	r.make(Workloads{})
	r.run()
}

// startWith is start with other settings.
func (r *rig) startWith(edit func(*Config)) {
	r.t.Helper()
	c := r.config(Workloads{})
	edit(c)
	r.with(c)
	r.run()
}

// make makes a node and a Plane.
func (r *rig) make(w Workloads) {
	r.t.Helper()
	r.with(r.config(w))
}

func (r *rig) with(c *Config) {
	r.t.Helper()
	n := check.Must(node.New(&node.Options{Owners: []string{DefaultOwner, bgp.DefaultOwner}}))(r.t)
	r.t.Cleanup(func() { n.Close() })
	r.node = n
	r.plane = check.Must(New(n, c))(r.t)
}

func (r *rig) config(w Workloads) *Config {
	c := &Config{
		Node: "a", VRF: "v", VXLAN: Tunnel{Segment: 4096}, Workloads: w, Listen: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
		Etcd: Etcd{Settings: etcd.Settings{Timeout: 2 * time.Second, KeepAlive: 500 * time.Millisecond}},
	}
	if r.proxy != nil {
		c.Etcd.Endpoints = []string{"http://" + r.proxy.Addr}
	}
	return c
}

// run runs the Plane until the test ends, or stop is called.
func (r *rig) run() (stop func()) {
	end := check.Run(r.t, r.plane.Run)
	stop = func() {
		end()
		if rows := r.rows(); rows != "" {
			r.t.Errorf("rows stay: %s", rows)
		}
	}
	r.t.Cleanup(stop)
	return stop
}

// rows are the routes of a Plane, sorted, in short.
func (r *rig) rows() string {
	var list []string
	for row := range r.node.Plane().Rows(DefaultOwner) {
		x := row.(control.Prefix)
		list = append(list, x.Prefix.String()+" "+x.Via.VTEP.Addr().String())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// peers are the addresses of peers, and what is announced to them.
func (r *rig) peers() string {
	st := r.plane.Status()
	if st.BGP == nil {
		return "none"
	}
	var list []string
	for _, p := range st.BGP.Peers {
		list = append(list, fmt.Sprintf("%v as %d", p.Addr, p.AS))
	}
	return fmt.Sprint(strings.Join(list, ", "), " ", st.BGP.Announced)
}

// wait waits until what f says is as wanted.
func (r *rig) wait(what string, f func() string, want string) {
	r.t.Helper()
	got := f()
	for end := time.Now().Add(time.Minute); got != want; got = f() {
		if time.Now().After(end) {
			st := r.plane.Status()
			r.t.Fatalf("%s: %s\nwant %s\nstatus %+v", what, got, want, st)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *rig) stale() string { return fmt.Sprint(!r.plane.Status().Stale.IsZero()) }

const (
	initialRows  = "10.65.2.0/26 192.0.2.2, 10.65.3.0/26 192.0.2.3"
	initialPeers = "192.0.2.2 as 64512, 192.0.2.3 as 64512 [10.65.1.0/26]"
)

// confd has the golden resources of one of confd's tests: see internal/model.
func confd(t *testing.T, name string) map[string]json.RawMessage {
	t.Helper()
	var list []struct {
		Name      string
		Resources map[string]json.RawMessage
	}
	check.OK(t, json.Unmarshal(check.Must(os.ReadFile("internal/model/testdata/confd.json"))(t), &list))
	for _, x := range list {
		if x.Name == name {
			return x.Resources
		}
	}
	t.Fatalf("no %s; there are %d", name, len(list))
	return nil
}
