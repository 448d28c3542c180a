package kube

import (
	"strings"
	"testing"
)

// Who has not said where the API server is hears what to say.
func TestNoServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for want, c := range map[string]*Config{
		"outside a pod the URL or a kubeconfig file is needed": {Node: "a"},
		`kubeconfig file "/none": stat /none`:                  {Node: "a", Kubeconfig: "/none"},
	} {
		if _, err := dial(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
