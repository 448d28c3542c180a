package kube

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/calico/internal/rules"
)

// Objects of every kind, whoever has written them, say keys that are theirs, and what they say is a value or an error; nothing that comes of it
// ends the process.
func FuzzObject(f *testing.F) {
	for _, o := range documents(f, read(f, "cluster.yaml")) {
		b, _ := json.Marshal(o)
		k, _ := of(f, o)
		for i := range kinds {
			if &kinds[i] == k {
				f.Add(uint8(i), b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, text []byte) {
		k := &kinds[int(i)%len(kinds)]
		x := k.one.DeepCopyObject()
		if json.Unmarshal(text, x) != nil {
			return
		}
		s := new(model.Store)
		seen := map[string]bool{}
		for _, x := range k.says(&Config{UsePodCIDR: len(text)%2 == 0}, k.strip(x)) {
			if (x.err == nil) != (x.value != nil) {
				t.Fatalf("%s: value %s, error %v", x.key, x.value, x.err)
			}
			if x.err != nil {
				s.Wrong(x.key, x.err)
				continue
			}
			if !json.Valid(x.value) {
				t.Fatalf("%s: %s", x.key, x.value)
			}
			if key, err := resource.ParseKey(x.key); err == nil {
				if seen[x.key] = true; !contains(k.of, key.Kind) {
					t.Fatalf("%s says %s", k, key)
				}
			}
			s.Put(x.key, x.value)
		}
		model.Compile(&model.Settings{Node: "a", VRF: "v", VXLAN: model.Tunnel{Segment: 4096}, IPIP: model.Tunnel{Segment: 100}, Segment: 10}, s)
		rules.Compile("a", s)
	})
}

func contains(list []resource.Kind, k resource.Kind) bool {
	for _, x := range list {
		if x == k {
			return true
		}
	}
	return false
}

// A label selector of Kubernetes chooses as the selector of Calico that it becomes, or is none: no key and no value is more than one.
func FuzzSelector(f *testing.F) {
	f.Add("app", "web", "In")
	f.Add("app", "v' || all() || k == '", "NotIn")
	f.Add("a) || has(b", "", "Exists")
	f.Fuzz(func(t *testing.T, key, value, operator string) {
		if strings.ContainsAny(operator, `"\`) {
			return
		}
		testSelector(t, key, value, operator)
	})
}
