package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// The client asks an API server as that of client-go does, and understands its answers.
func TestClientAsGentype(t *testing.T) {
	var asked string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = fmt.Sprint(r.Method, " ", r.URL, " ", r.Header, " ", string(body))
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("watch") != "":
			io.WriteString(w, `{"type": "ADDED", "object": {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}}}`)
		case r.URL.Path == "/api/v1/nodes":
			io.WriteString(w, `{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}`)
		case r.URL.Path == "/api/v1/nodes/none":
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "message": "there is none", "code": 404}`)
		case r.URL.Path == "/api/v1/namespaces/n/pods/a":
			io.WriteString(w, `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}`)
		case r.URL.Path == "/api/v1/namespaces/n/configmaps/a":
			io.WriteString(w, `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}`)
		default:
			io.WriteString(w, `{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}}`)
		}
	}))
	defer web.Close()
	s, err := dial(&Config{REST: &rest.Config{Host: web.URL, QPS: -1}})
	if err != nil {
		t.Fatal(err)
	}
	ours := s.client()
	defer ours.close()
	theirs := &client{
		nodes: gentype.NewClientWithList("nodes", s.Interface, s.params, "", func() *corev1.Node { return new(corev1.Node) }, func() *corev1.NodeList { return new(corev1.NodeList) }),
		pods: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return gentype.NewClient("pods", s.Interface, s.params, namespace, func() *corev1.Pod { return new(corev1.Pod) }).Get(ctx, name, metav1.GetOptions{})
		},
		configMaps: func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
			return gentype.NewClient("configmaps", s.Interface, s.params, namespace, func() *corev1.ConfigMap { return new(corev1.ConfigMap) }).Get(ctx, name, metav1.GetOptions{})
		},
	}
	seconds, yes := int64(77), true
	all := metav1.ListOptions{ResourceVersion: "12", TimeoutSeconds: &seconds, Limit: 500, Continue: "more", SendInitialEvents: &yes, AllowWatchBookmarks: true}
	ctx := t.Context()
	for name, do := range map[string]func(c *client) (any, error){
		"get":      func(c *client) (any, error) { return c.nodes.Get(ctx, "a", metav1.GetOptions{ResourceVersion: "3"}) },
		"get none": func(c *client) (any, error) { return c.nodes.Get(ctx, "none", metav1.GetOptions{}) },
		"list":     func(c *client) (any, error) { return c.nodes.List(ctx, metav1.ListOptions{}) },
		"list so":  func(c *client) (any, error) { return c.nodes.List(ctx, all) },
		"watch":    func(c *client) (any, error) { return first(c.nodes.Watch(ctx, metav1.ListOptions{})) },
		"watch so": func(c *client) (any, error) { return first(c.nodes.Watch(ctx, all)) },
		"patch": func(c *client) (any, error) {
			return c.nodes.Patch(ctx, "a", types.MergePatchType, []byte(`{"x": 1}`), metav1.PatchOptions{})
		},
		"patch part": func(c *client) (any, error) {
			return c.nodes.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{FieldManager: "x"}, "status")
		},
		"pod":         func(c *client) (any, error) { return c.pods(ctx, "n", "a") },
		"config maps": func(c *client) (any, error) { return c.configMaps(ctx, "n", "a") },
	} {
		var answers, requests [2]string
		for i, c := range []*client{ours, theirs} {
			asked = ""
			x, err := do(c)
			answers[i], requests[i] = fmt.Sprintf("%+v, %v", x, err), asked
		}
		if requests[0] == "" || requests[0] != requests[1] {
			t.Errorf("%s: asked\n%s\nwant\n%s", name, requests[0], requests[1])
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: got\n%s\nwant\n%s", name, answers[0], answers[1])
		}
	}
}

// first returns what a watch says first.
func first(w watch.Interface, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	return (<-w.ResultChan()).Object, nil
}
