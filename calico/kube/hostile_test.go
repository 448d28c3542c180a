package kube

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/calico/internal/rules"
)

// hostile has an object of a kind converted, and all that comes of it.
func hostile(t *testing.T, k *kind, text []byte) {
	o := k.one.DeepCopyObject()
	if json.Unmarshal(text, o) != nil {
		return
	}
	s := new(model.Store)
	for _, x := range k.says(&Config{UsePodCIDR: len(text)%2 == 0}, k.strip(o)) {
		if x.err != nil {
			s.Wrong(x.key, x.err)
			continue
		}
		if !json.Valid(x.value) {
			t.Fatalf("%s: %s", x.key, x.value)
		}
		if key, err := resource.ParseKey(x.key); err == nil && !slices.Contains(k.of, key.Kind) {
			t.Fatalf("%s says %s", k, key)
		}
		s.Put(x.key, x.value)
	}
	model.Compile(&model.Settings{Node: "a", VRF: "v", VXLAN: model.Tunnel{Segment: 4096}, IPIP: model.Tunnel{Segment: 100}, Segment: 10}, s)
	rules.Compile("a", s)
}

// strange are values in the place of others.
var strange = []any{nil, true, -1, 1e30, 70000, "", "x", "\x00", "a/b", "-", "'", `"`, "10.65.0.0/16", "fe80::1%x", "::ffff:10.0.0.1/24", strings.Repeat("9", 400), []any{}, []any{nil}, map[string]any{}, map[string]any{"name": "x"}}

// spoil puts a strange value somewhere into an object.
func spoil(r *rand.Rand, x any) any {
	switch x := x.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(x))
		if len(keys) > 0 && r.IntN(4) > 0 {
			k := keys[r.IntN(len(keys))]
			x[k] = spoil(r, x[k])
			return x
		}
	case []any:
		if len(x) > 0 && r.IntN(4) > 0 {
			i := r.IntN(len(x))
			x[i] = spoil(r, x[i])
			return x
		}
	}
	return strange[r.IntN(len(strange))]
}

// Objects of every kind, whoever has written them, say keys that are theirs, and what they say is a value or an error; nothing that comes of it
// ends the process. A fuzzer has no idea of JSON, and would take a quarter of an hour to compile client-go: these are objects of the cluster
// with strange values in them.
func TestHostileObjects(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, o := range documents(t, read(t, "cluster.yaml")) {
		k, _ := of(t, o)
		for range 300 {
			c := clone(o)
			for range 1 + r.IntN(3) {
				spoil(r, c["metadata"])
				c["spec"] = spoil(r, c["spec"])
			}
			text, _ := json.Marshal(c)
			hostile(t, k, text)
		}
	}
}

// A label selector of Kubernetes chooses as the selector of Calico that it becomes, or is none: no key and no value is more than one.
func TestHostileSelectors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"app", "web", "a.b/c", "'", `"`, "\\", "(", ")", "{", "}", " || ", " && ", "!", "all()", "has(", "k == ", ",", "-", "_", ".", "/", "\x00", "é", strings.Repeat("a", 70), ""}
	text := func() (s string) {
		for range r.IntN(4) {
			s += pieces[r.IntN(len(pieces))]
		}
		return s
	}
	for range 5000 {
		testSelector(t, text(), text(), []string{"In", "NotIn", "Exists", "DoesNotExist", "x"}[r.IntN(5)])
	}
}
