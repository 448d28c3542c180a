package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestConfig(t *testing.T) {
	for prefix, want := range map[string]string{"": "flannel.alpha.coreos.com/", "a.b": "a.b/", "a.b/": "a.b/", "a.b/c": "a.b/c-", "a.b/c-": "a.b/c-"} {
		c := &Config{Node: "n", Prefix: prefix}
		if got := c.prefix(); got != want || c.Check() != nil {
			t.Errorf("%q: %q, %v", prefix, got, c.Check())
		}
	}
	for want, c := range map[string]*Config{
		"Node: : the name of this node is needed, or Pod":     {},
		"Pod: flannel: must be NAMESPACE/NAME":                {Pod: "flannel"},
		"ConfigMap: a/b/c: must be NAMESPACE/NAME":            {Node: "n", ConfigMap: "a/b/c"},
		"ConfigMap: a/b: it is of no use with a NetworkFile":  {Node: "n", ConfigMap: "a/b", NetworkFile: "/x"},
		"Prefix: flannel: must be a domain in lower case":     {Node: "n", Prefix: "flannel"},
		"Prefix: a.b/c/d: must be":                            {Node: "n", Prefix: "a.b/c/d"},
		"Timeout: 1ms: must be 100ms or longer, or 0 for 10s": {Node: "n", Timeout: time.Millisecond},
		"kube: no API server: kubeconfig file /none: stat":    {Node: "n", Kubeconfig: "/none"},
	} {
		if _, err := New(c); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := New(nil); err == nil {
		t.Error("nil: no error")
	}
	s := check.Must(New(&Config{Node: "n", URL: "http://127.0.0.1:1"}))(t)
	s.Close()
}
