package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// Somebody who can write to the datastore fills it with more of each kind than is read: what was there before stays.
func TestWorstResources(t *testing.T) {
	const good = 1000
	s := data{
		"ippools/pool": `{"cidr":"10.0.0.0/8","vxlanMode":"Always"}`, "nodes/a": `{"bgp":{"ipv4Address":"192.0.2.1/24"},"ipv4VXLANTunnelAddr":"10.0.0.1"}`,
	}.store("a")
	put := func(i int) {
		p := fmt.Sprintf("10.%d.%d.%d/28", i>>12, i>>4&255, i&15<<4)
		s.Put(blockKey(p), []byte(block(p, fmt.Sprintf("n%d", i%100))))
	}
	for i := range 100 {
		s.Put(fmt.Sprintf("%snodes/n%d", resourcesKey, i), fmt.Appendf(nil, `{"spec":{"bgp":{"ipv4Address":"192.0.2.%d/24"},"ipv4VXLANTunnelAddr":"10.255.0.%d"}}`, i+2, i))
	}
	for i := range good {
		put(i)
	}
	c := settings("a")
	c.NoBGP = true
	kept := func(plan *Plan) (n int) {
		for _, r := range plan.Rows {
			if x := fmt.Sprint(r); strings.Contains(x, "10.0.") && strings.Contains(x, "192.0.2.") {
				n++
			}
		}
		return n
	}
	alone := kept(Compile(c, s))
	most := func(k resource.Kind) int { return k.Most() + 100 }
	for i := range most(resource.KindNode) {
		s.Put(fmt.Sprintf("%snodes/0%d", resourcesKey, i), []byte(`{"spec":{"bgp":{"ipv4Address":"192.0.2.3/24"},"ipv4VXLANTunnelAddr":"10.255.9.9"}}`))
	}
	for i := range most(resource.KindBlock) {
		put(1<<16 + i)
	}
	for i := range most(resource.KindPool) {
		s.Put(fmt.Sprintf("%sippools/z%d", resourcesKey, i), fmt.Appendf(nil, `{"spec":{"cidr":"10.0.%d.0/24"}}`, i&255))
	}
	for i := range most(resource.KindPeer) {
		s.Put(fmt.Sprintf("%sbgppeers/%d", resourcesKey, i), []byte("junk"))
		s.Put(fmt.Sprintf("%sunknown/%d", resourcesKey, i), nil)
	}
	for i := range most(resource.KindGlobalPolicy) {
		s.Put(fmt.Sprintf("%sglobalnetworkpolicies/%d", resourcesKey, i), []byte("junk"))
		s.Put(fmt.Sprintf("%stiers/%d", resourcesKey, i), []byte("{}"))
	}
	for _, k := range []resource.Kind{resource.KindNode, resource.KindBlock, resource.KindPool, resource.KindPeer, resource.KindGlobalPolicy, resource.KindTier} {
		if s.Len(k) != k.Most() {
			t.Errorf("%v: %d, want %d", k, s.Len(k), k.Most())
		}
	}
	plan := Compile(c, s)
	if len(plan.Rows) > MaxRows || len(plan.Problems) != MaxProblems || plan.More == 0 || len(s.strange) > maxStrange {
		t.Errorf("%d rows, %d and %d problems, %d strange keys", len(plan.Rows), len(plan.Problems), plan.More, len(s.strange))
	}
	if s.Missing() {
		t.Error("all is read again, with nothing gone")
	}
	worst.Kept(t, "resources of Calico's datastore", alone, kept(plan))
	if len(s.Problems(true)) != s.Len(resource.KindGlobalPolicy)+2 || len(s.Unread(resource.KindGlobalPolicy)) != s.Len(resource.KindGlobalPolicy) || s.Left(resource.KindTier) == 0 {
		t.Errorf("%d problems of policy", len(s.Problems(true)))
	}
	for i := range resource.KindPeer.Most() {
		s.Delete(fmt.Sprintf("%sbgppeers/%d", resourcesKey, i))
	}
	if !s.Missing() {
		t.Error("there is room, and nothing is read again")
	}
}
