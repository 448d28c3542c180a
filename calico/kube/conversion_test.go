package kube

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// of is the kind of an object, and the object as one.
func of(t testing.TB, o map[string]any) (*kind, runtime.Object) {
	t.Helper()
	k := kindOf(o)
	if k == nil {
		t.Fatalf("%s %s is of no kind", o["apiVersion"], o["kind"])
	}
	x := k.one.DeepCopyObject()
	check.OK(t, json.Unmarshal(check.Must(json.Marshal(o))(t), x))
	return k, x
}

// Objects say what Calico's own conversion makes of them, and resources are read from what they say.
func TestConversion(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "conversion.txt"), "\n## ")
	for c := range strings.SplitSeq(text, "\n## ") {
		title, rest, _ := strings.Cut(c, "\n")
		parts := strings.Split(rest, "\n=> ")
		var o map[string]any
		check.OK(t, yaml.Unmarshal([]byte(parts[0]), &o))
		k, x := of(t, o)
		got := map[string]string{}
		for _, s := range k.says(&Config{UsePodCIDR: strings.HasPrefix(title, "UsePodCIDR")}, k.strip(x)) {
			if s.err != nil {
				got[s.key] = "error " + s.err.Error()
				continue
			}
			got[s.key] = string(s.value)
			if key, err := resource.ParseKey(s.key); err != nil {
				t.Errorf("%s: %v", title, err)
			} else if _, err := resource.Parse(key, s.value); err != nil {
				t.Errorf("%s: %s: %v", title, key, err)
			}
		}
		for _, p := range parts[1:] {
			key, want, _ := strings.Cut(p, "\n")
			want = strings.TrimSpace(want)
			if !strings.HasPrefix(key, "/") && !strings.Contains(key, " ") && !strings.HasPrefix(key, "ipamblocks/") && !strings.HasPrefix(key, "blockaffinities/") {
				key = v3(key)
			}
			if is, ok := got[key]; !ok || is != want && !sameJSON(is, want) {
				t.Errorf("%s: %s:\n%s\nwant\n%s", title, key, is, want)
			}
			delete(got, key)
		}
		for key, v := range got {
			t.Errorf("%s: %s is too much: %s", title, key, v)
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
