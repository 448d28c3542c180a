package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	vxcalico "github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A cluster is an API server, and what an administrator does there.
type cluster struct {
	t    *testing.T
	url  string
	fake *fake // nil for a real one
	http *http.Client
}

// newCluster starts a fake with the objects of a manifest.
func newCluster(t *testing.T, manifest string) *cluster {
	f := newFake(t)
	c := &cluster{t: t, url: f.web.URL, fake: f, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
	t.Cleanup(c.http.CloseIdleConnections)
	c.apply(manifest)
	return c
}

// read returns a file of testdata.
func read(t testing.TB, name string) string {
	t.Helper()
	return string(check.Must(os.ReadFile("testdata/" + name))(t))
}

// documents are the objects of a manifest.
func documents(t testing.TB, manifest string) (list []map[string]any) {
	t.Helper()
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		var o map[string]any
		check.OK(t, yaml.Unmarshal([]byte(doc), &o))
		if o != nil {
			list = append(list, o)
		}
	}
	return list
}

// more are kinds that nobody follows.
var more = map[string]string{
	"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "CustomResourceDefinition": "customresourcedefinitions",
}

// kindOf is the kind of an object, nil if nobody follows it.
func kindOf(o map[string]any) *kind {
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.group.String() == o["apiVersion"] && k.kind == o["kind"] }); i >= 0 {
		return &kinds[i]
	}
	return nil
}

// collection is the path of objects like one.
func collection(t testing.TB, o map[string]any) string {
	t.Helper()
	version, word := o["apiVersion"].(string), o["kind"].(string)
	name := more[word]
	if k := kindOf(o); k != nil {
		name = k.name
	}
	if name == "" {
		t.Fatalf("%s %s is of no kind", version, word)
	}
	path := "/apis/" + version
	if version == "v1" {
		path = "/api/v1"
	}
	if namespace, ok := o["metadata"].(map[string]any)["namespace"].(string); ok {
		path += "/namespaces/" + namespace
	}
	return path + "/" + name
}

// apply writes the objects of a manifest.
func (c *cluster) apply(manifest string) {
	c.t.Helper()
	for _, o := range documents(c.t, manifest) {
		c.put(o)
	}
}

// put writes an object, whether it is there or not.
func (c *cluster) put(o map[string]any) {
	c.t.Helper()
	path := collection(c.t, o)
	object := path + "/" + o["metadata"].(map[string]any)["name"].(string)
	status, text := c.call("POST", path, o)
	if status == http.StatusConflict {
		if c.fake == nil {
			var is map[string]any
			_, text := c.call("GET", object, nil)
			check.OK(c.t, json.Unmarshal([]byte(text), &is))
			o["metadata"].(map[string]any)["resourceVersion"] = is["metadata"].(map[string]any)["resourceVersion"]
		}
		status, text = c.call("PUT", object, o)
	}
	if status/100 != 2 {
		c.t.Fatalf("%s: %d %s", object, status, text)
	}
	if s := o["status"]; s != nil {
		if status, text = c.call("PATCH", object+"/status", map[string]any{"status": s}); status/100 != 2 {
			c.t.Fatalf("status of %s: %d %s", object, status, text)
		}
	}
}

// del removes an object.
func (c *cluster) del(path string) {
	c.t.Helper()
	if status, text := c.call("DELETE", path+"?gracePeriodSeconds=0", nil); status/100 != 2 {
		c.t.Fatalf("%s: %d %s", path, status, text)
	}
}

func (c *cluster) call(method, path string, body any) (int, string) {
	c.t.Helper()
	b := check.Must(json.Marshal(body))(c.t)
	r := check.Must(http.NewRequestWithContext(context.Background(), method, c.url+path, bytes.NewReader(b)))(c.t)
	r.Header.Set("Authorization", "Bearer "+adminToken)
	r.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[method])
	if method != "PATCH" {
		r.Header.Set("Content-Type", "application/json")
	}
	a := check.Must(c.http.Do(r))(c.t)
	defer a.Body.Close()
	return a.StatusCode, string(check.Must(io.ReadAll(a.Body))(c.t))
}

// datastore is that of a user with a token, by way of an address if that is not "".
func (c *cluster) datastore(token, addr string, edit ...func(*Config)) *Datastore {
	c.t.Helper()
	url := c.url
	if addr != "" {
		url = url[:strings.Index(url, "://")+3] + addr
	}
	cfg := &Config{REST: &rest.Config{Host: url, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: strings.HasPrefix(url, "https")}}, Timeout: 20 * time.Second}
	for _, f := range edit {
		f(cfg)
	}
	d := check.Must(New(cfg))(c.t)
	d.absent, d.pause = 20*time.Millisecond, time.Millisecond
	return d
}

// A heard is what a Reader has been told.
type heard struct {
	mu    sync.Mutex
	keys  map[string]string // "error: " before why there is no value
	dones int
	err   error // of the next Done
}

func (h *heard) Reset()                   { h.mu.Lock(); h.keys, h.dones = map[string]string{}, 0; h.mu.Unlock() }
func (h *heard) Put(key string, v []byte) { h.mu.Lock(); h.keys[key] = string(v); h.mu.Unlock() }
func (h *heard) Wrong(key string, e error) {
	h.mu.Lock()
	h.keys[key] = "error: " + e.Error()
	h.mu.Unlock()
}
func (h *heard) Delete(key string) { h.mu.Lock(); delete(h.keys, key); h.mu.Unlock() }
func (h *heard) Done(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dones++
	return h.err
}

func (h *heard) get(key string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dones == 0 {
		return "nothing is whole"
	}
	return h.keys[key]
}

// wait waits until a key has a value that contains a text, "" for no value at all.
func (h *heard) wait(t *testing.T, key, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if got = h.get(key); want == "" && got == "" || want != "" && strings.Contains(got, want) {
			return
		}
	}
	t.Fatalf("%s: %q, want %q", key, got, want)
}

// prefixes are all of node a.
func prefixes() []string { return append(resource.Prefixes("a"), resource.PolicyPrefixes()...) }

// follow follows a datastore until the test ends, and returns its end.
func follow(t *testing.T, d *Datastore, list []string) (*heard, chan error) {
	h := &heard{keys: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var all sync.WaitGroup
	all.Go(func() { ended <- d.Follow(ctx, list, h) })
	t.Cleanup(func() { cancel(); all.Wait() })
	return h, ended
}

var _ vxcalico.Reader = (*heard)(nil)

// v3 is the path of a resource in etcd.
func v3(name string) string { return "/calico/resources/v3/projectcalico.org/" + name }
