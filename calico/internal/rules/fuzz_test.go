package rules

import (
	"encoding/json"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Resources and packets of bytes: see compare. Whatever is in the datastore, what is compiled is right, and the same the second time.
func FuzzCompile(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x03\x01\x02\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x01\x01\x01\x01\x02\x02\x02\x02\x03\x03\x03"))
	f.Add([]byte(`spec":{"ingress":[{"action":"Deny"},{"action":"Allow","source":{"selector":"has(a"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		compare(t, b)
		w := newWorld(b)
		s := w.store()
		for _, key := range []string{"globalnetworkpolicies/p0", "networkpolicies/x/p", "workloadendpoints/x/n-k8s-w0-eth0", "profiles/p", "networksets/x/s"} {
			if w.draw.N(3) == 1 {
				s.Put(prefixKey+key, b)
			}
		}
		plan := Compile("n", s)
		for i := range plan.Endpoints {
			check.OK(t, plan.Endpoints[i].Config.Check())
		}
		check.Equal(t, "the second time", text(Compile("n", s)), text(plan))
		check.Equal(t, "of nothing", len(Compile("n", new(model.Store)).Endpoints), 0)
	})
}

func text(plan *Plan) string {
	b, err := json.Marshal(plan)
	if err != nil {
		panic(err)
	}
	return string(b)
}
