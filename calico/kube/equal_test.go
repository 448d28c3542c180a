package kube

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/rules"
)

// The cluster of testdata is once as kubectl has it, and once as calicoctl, calico-ipam, the CNI plugin and kube-controllers write it in etcd.
// Both come to the same peers, rows and policies.
func TestEqual(t *testing.T) {
	equal(t, newCluster(t, read(t, "cluster.yaml")).datastore("", ""))
}

func equal(t *testing.T, d *Datastore) {
	t.Helper()
	etcd := new(model.Store)
	for line := range strings.Lines(read(t, "cluster.txt")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		etcd.Put(key, []byte(value))
	}
	h, _ := follow(t, d, prefixes())
	h.wait(t, v3("workloadendpoints/shop/a-k8s-web--0-eth0"), "10.65.1.5")
	kube := new(model.Store)
	h.mu.Lock()
	for key, value := range h.keys {
		if strings.HasPrefix(key, "/calico/ipam/v2/host/b/") {
			t.Errorf("%s: is of another node", key)
		}
		if strings.HasPrefix(value, "error: ") {
			t.Errorf("%s: %s", key, value)
		}
		kube.Put(key, []byte(value))
	}
	h.mu.Unlock()
	for _, bgp := range []bool{true, false} {
		s := &model.Settings{Node: "a", VRF: "v", VXLAN: model.Tunnel{Segment: 4096}, IPIP: model.Tunnel{Segment: 100}, Segment: 10, Distance: 20, NoBGP: !bgp}
		is, want := model.Compile(s, kube), model.Compile(s, etcd)
		same(t, "peers", is.BGP, want.BGP)
		same(t, "rows", is.Rows, want.Rows)
		same(t, "own node", is.Own, want.Own)
		same(t, "problems", is.Problems, want.Problems)
		if len(want.Rows) == 0 || bgp && len(want.BGP.Peers) != 2 {
			t.Errorf("rows %v; BGP %+v", want.Rows, want.BGP)
		}
	}
	is, want := rules.Compile("a", kube), rules.Compile("a", etcd)
	same(t, "problems of policies", is.Problems, want.Problems)
	if len(is.Endpoints) != len(want.Endpoints) || len(is.Endpoints) != 2 {
		t.Fatalf("endpoints %+v, want %+v", is.Endpoints, want.Endpoints)
	}
	for i := range want.Endpoints {
		is, want := is.Endpoints[i], want.Endpoints[i]
		same(t, want.Name, []any{is.Name, is.Interface, is.Addrs, *is.Ruling}, []any{want.Name, want.Interface, want.Addrs, *want.Ruling})
		if len(want.Guard.MACs) == 0 {
			t.Errorf("%s: no MAC in etcd", want.Name)
		}
		want.Guard.MACs = nil // a Pod has none
		same(t, want.Name+": guard", *is.Guard, *want.Guard)
	}
	web := want.Endpoints[1]
	if got := fmt.Sprint(web.Policies); got != "[globalnetworkpolicies/security.no-bogons networkpolicies/shop/front networkpolicies/shop/knp.default.web profiles/kns.shop profiles/ksa.shop.web]" {
		t.Error(got)
	}
}

func same(t *testing.T, what string, is, want any) {
	t.Helper()
	if !reflect.DeepEqual(is, want) {
		t.Errorf("%s:\n%+v\nwant\n%+v", what, is, want)
	}
}
