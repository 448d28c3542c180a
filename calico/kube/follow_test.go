package kube

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const small = `
apiVersion: v1
kind: Node
metadata: {name: a, annotations: {projectcalico.org/IPv4Address: 192.0.2.1/24}}
---
apiVersion: crd.projectcalico.org/v1
kind: IPPool
metadata: {name: default}
spec: {cidr: 10.65.0.0/16, vxlanMode: Always}
`

const another = `
apiVersion: crd.projectcalico.org/v1
kind: IPPool
metadata: {name: NAME}
spec: {cidr: CIDR}
`

func pool(name, cidr string) string {
	return strings.NewReplacer("NAME", name, "CIDR", cidr).Replace(another)
}

const pools = "/apis/crd.projectcalico.org/v1/ippools/"

// What is there is whole before anything is told, and then each change comes, by lists and by streams. Nothing is written.
func TestFollow(t *testing.T) {
	for name, stream := range map[string]bool{"list": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, small)
			c.fake.stream = stream
			h, _ := follow(t, c.datastore("", ""), prefixes())
			h.wait(t, v3("ippools/default"), `"cidr":"10.65.0.0/16","vxlanMode":"Always"`)
			h.wait(t, v3("nodes/a"), `"ipv4Address":"192.0.2.1/24"`)
			c.apply(pool("more", "10.66.0.0/16"))
			h.wait(t, v3("ippools/more"), "10.66.0.0/16")
			c.apply(pool("more", "10.67.0.0/16"))
			h.wait(t, v3("ippools/more"), "10.67.0.0/16")
			c.del(pools + "more")
			h.wait(t, v3("ippools/more"), "")
			lists, _ := c.fake.count("ippools")
			c.fake.mu.Lock()
			defer c.fake.mu.Unlock()
			if stream != (lists == 0) || c.fake.wrote {
				t.Errorf("%d lists; wrote: %v", lists, c.fake.wrote)
			}
		})
	}
}

// A status that a kubelet writes says nothing new, and nobody hears of it.
func TestSame(t *testing.T) {
	c := newCluster(t, small)
	h, _ := follow(t, c.datastore("", ""), prefixes())
	h.wait(t, v3("nodes/a"), "192.0.2.1")
	h.mu.Lock()
	before := h.dones
	h.mu.Unlock()
	for range 20 {
		c.call("PATCH", "/api/v1/nodes/a/status", map[string]any{"status": map[string]any{"phase": "Running"}})
	}
	c.call("PATCH", "/api/v1/nodes/a/status", map[string]any{"status": map[string]any{"addresses": []any{map[string]any{"type": "InternalIP", "address": "192.0.2.99"}}}})
	h.wait(t, v3("nodes/a"), "192.0.2.99")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dones != before+1 {
		t.Errorf("%d changes, want 1", h.dones-before)
	}
}

// When the API server has forgotten the changes, a kind is listed again. What has happened meanwhile comes, and what has gone, goes. Nobody
// hears of an outage.
func TestForgotten(t *testing.T) {
	c := newCluster(t, small+"---\n"+pool("more", "10.66.0.0/16"))
	h, ended := follow(t, c.datastore("", ""), prefixes())
	h.wait(t, v3("ippools/more"), "10.66.0.0/16")
	for i := range 3 {
		before, _ := c.fake.count("ippools")
		c.fake.mu.Lock() // while no watch is told
		delete(c.fake.objects, pools+"more")
		c.fake.mu.Unlock()
		c.apply(pool("more", "10.66.0.0/16"))
		c.fake.forget(pools + "more")
		h.wait(t, v3("ippools/more"), "")
		if after, _ := c.fake.count("ippools"); after == before {
			t.Errorf("round %d: no list", i)
		}
		c.apply(pool("more", "10.66.0.0/16"))
		h.wait(t, v3("ippools/more"), "10.66.0.0/16")
	}
	select {
	case err := <-ended:
		t.Errorf("it has ended: %v", err)
	default:
	}
}

// What the API server refuses ends it, and says which kind.
func TestRefused(t *testing.T) {
	for kind, say := range map[string]struct {
		status int
		want   string
	}{
		"pods":    {403, "kube: pods: pods is refused to this user"},
		"ippools": {404, "kube: ippools.crd.projectcalico.org: the API server has no such kind: is this a cluster of Calico, with the API group crd.projectcalico.org/v1?"},
		"tiers":   {403, "kube: tiers.crd.projectcalico.org: tiers is refused"},
	} {
		c := newCluster(t, small)
		c.fake.say(kind, say.status)
		h, ended := follow(t, c.datastore("", ""), prefixes())
		if err := <-ended; !strings.Contains(err.Error(), say.want) {
			t.Errorf("%s: %v, want %s", kind, err, say.want)
		}
		if h.dones != 0 {
			t.Errorf("%s: something is whole", kind)
		}
	}
}

// A kind that the API server does not have has no objects, until it has.
func TestAbsent(t *testing.T) {
	c := newCluster(t, small)
	c.fake.say("bgpfilters", 404)
	h, _ := follow(t, c.datastore("", ""), prefixes())
	h.wait(t, v3("ippools/default"), "10.65.0.0/16")
	c.apply("apiVersion: crd.projectcalico.org/v1\nkind: BGPFilter\nmetadata: {name: f}\nspec: {}\n")
	if got := h.get(v3("bgpfilters/f")); got != "" {
		t.Errorf("there: %s", got)
	}
	c.fake.say("bgpfilters", 0)
	h.wait(t, v3("bgpfilters/f"), "spec")
}

// Only what is asked for is read.
func TestPrefixes(t *testing.T) {
	c := newCluster(t, small)
	h, _ := follow(t, c.datastore("", ""), []string{v3("ippools/")})
	h.wait(t, v3("ippools/default"), "10.65.0.0/16")
	if lists, watches := c.fake.count("pods"); lists+watches > 0 || h.get(v3("nodes/a")) != "" {
		t.Errorf("%d lists and %d watches of pods", lists, watches)
	}
}

// Two objects of one name are none, and when one goes everything is read again.
func TestClash(t *testing.T) {
	const both = `
apiVersion: crd.projectcalico.org/v1
kind: GlobalNetworkPolicy
metadata: {name: default.x}
spec: {selector: all()}
---
apiVersion: crd.projectcalico.org/v1
kind: GlobalNetworkPolicy
metadata: {name: x, annotations: {projectcalico.org/metadata: '{"name":"x"}'}}
spec: {selector: all()}
`
	c := newCluster(t, small+"---\n"+both)
	h, ended := follow(t, c.datastore("", ""), prefixes())
	h.wait(t, v3("globalnetworkpolicies/x"), "error: two objects have this name: globalnetworkpolicies.crd.projectcalico.org/default.x and globalnetworkpolicies.crd.projectcalico.org/x")
	c.apply(strings.ReplaceAll(both, "all()", "has(y)"))
	c.apply(pool("more", "10.66.0.0/16"))
	h.wait(t, v3("ippools/more"), "10.66.0.0/16")
	h.wait(t, v3("globalnetworkpolicies/x"), "error: two objects")
	c.del("/apis/crd.projectcalico.org/v1/globalnetworkpolicies/x")
	if err := <-ended; !errors.Is(err, errClash) {
		t.Error(err)
	}
	h, _ = follow(t, c.datastore("", ""), prefixes())
	h.wait(t, v3("globalnetworkpolicies/x"), "has(y)")
}

// An end that the Reader asks for is one.
func TestReaderEnds(t *testing.T) {
	c := newCluster(t, small)
	h, ended := follow(t, c.datastore("", ""), prefixes())
	h.wait(t, v3("ippools/default"), "10.65.0.0/16")
	again := errors.New("again")
	h.mu.Lock()
	h.err = again
	h.mu.Unlock()
	c.apply(pool("more", "10.66.0.0/16"))
	select {
	case err := <-ended:
		if !errors.Is(err, again) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}
