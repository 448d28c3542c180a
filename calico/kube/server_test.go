package kube

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/kubelab"
)

// definition is a CustomResourceDefinition of Calico, without its schema.
func definition(k *kind) map[string]any {
	scope := "Cluster"
	if slices.ContainsFunc(k.of, resource.Kind.Namespaced) {
		scope = "Namespaced"
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": k.String()},
		"spec": map[string]any{
			"group": k.group.Group, "scope": scope,
			"names": map[string]any{"kind": k.kind, "listKind": k.kind + "List", "plural": k.name, "singular": strings.ToLower(k.kind)},
			"versions": []any{map[string]any{"name": k.group.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}
}

// The real kube-apiserver does what the fake one does, with the permissions of the manifest, and of the cluster of testdata comes what
// comes of etcd.
func TestServer(t *testing.T) {
	s := kubelab.Start(t)
	c := &cluster{t: t, url: s.URL, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
	t.Cleanup(c.http.CloseIdleConnections)
	for i := range kinds {
		if kinds[i].group == calico && kinds[i].name != "bgpfilters" {
			c.put(definition(&kinds[i]))
		}
	}
	c.established()
	manifest := read(t, "cluster.yaml")
	docs := documents(t, manifest)
	for _, o := range docs {
		if o["kind"] != "BGPFilter" {
			c.put(o)
		}
	}
	c.apply(string(check.Must(os.ReadFile("vxswitch.yaml"))(t)))

	t.Run("denied", func(t *testing.T) {
		_, ended := follow(t, c.datastore(kubelab.Flannel, ""), prefixes())
		if err := <-ended; !strings.Contains(err.Error(), "is forbidden: User \"system:serviceaccount:kube-flannel:flannel\" cannot") {
			t.Error(err)
		}
	})
	d := c.datastore(kubelab.Calico, "")
	t.Run("a kind that comes later", func(t *testing.T) {
		h, _ := follow(t, d, prefixes())
		h.wait(t, v3("ippools/vxlan"), "10.65.0.0/16")
		for i := range kinds {
			if kinds[i].name == "bgpfilters" {
				c.put(definition(&kinds[i]))
			}
		}
		c.established()
		for _, o := range docs {
			if o["kind"] == "BGPFilter" {
				c.put(o)
			}
		}
		h.wait(t, v3("bgpfilters/no-default"), "importV4")
	})
	t.Run("equal", func(t *testing.T) { equal(t, d) })
	t.Run("restart", func(t *testing.T) { away(c, join(t, d), s.Stop, s.Start, "...") })
}

// established waits until all kinds of Calico are served whose definitions are there.
func (c *cluster) established() {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		missing := ""
		for i := range kinds {
			if k := &kinds[i]; k.group == calico {
				there, _ := c.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+k.String(), nil)
				served, _ := c.call("GET", "/apis/"+k.group.String()+"/"+k.name, nil)
				if there == http.StatusOK && served != http.StatusOK {
					missing += fmt.Sprint(k, ": ", served, " ")
				}
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			c.t.Fatal(missing)
		}
	}
}
