package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/setting"
)

func TestConfig(t *testing.T) {
	for want, c := range map[string]*Config{
		"Timeout: 1ms: must be 100ms or longer, or 0 for 10s": {Timeout: time.Millisecond},
		"InterfacePrefix: workload: must be at most 4 bytes":  {InterfacePrefix: "workload"},
	} {
		if _, err := New(c); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	check.Must(New(nil))(t)
}

// Who has not said where the API server is hears what to say.
func TestNoServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for want, c := range map[string]*Config{
		"kube: no API server: outside a pod the URL or a kubeconfig file is needed": {},
		`kube: no API server: kubeconfig file "/none": stat /none`:                  {Kubeconfig: "/none"},
	} {
		d := check.Must(New(c))(t)
		if err := d.Follow(t.Context(), prefixes(), &heard{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://192.0.2.1", certificate-authority: CA}}]
users: [{name: lab, user: {tokenFile: TOKEN, client-certificate: CERT, client-key: KEY}}]
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
current-context: lab
`

// Files that cannot be read are named: the kubeconfig file, and those that it names.
func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		check.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	is := file("is", "x")
	config := func(ca, token, cert, key string) *Config {
		text := strings.NewReplacer("CA", ca, "TOKEN", token, "CERT", cert, "KEY", key).Replace(kubeconfig)
		return &Config{Kubeconfig: file("config"+strings.ReplaceAll(ca, "/", "-"), text)}
	}
	for _, c := range []struct {
		cfg  *Config
		want []string
	}{
		{&Config{}, nil},
		{&Config{Kubeconfig: filepath.Join(dir, "none")}, []string{`kube: Config.Kubeconfig: "` + dir + `/none": no such file or directory`}},
		{&Config{Kubeconfig: file("bad", "{")}, []string{"kube: Config.Kubeconfig: "}},
		{config(is, is, is, is), nil},
		{config("/no/ca", "/no/token", is, "/no/key"), []string{
			`kube: Config.Kubeconfig: tokenFile: "/no/token": no such file or directory`, `Kubeconfig: client-key: "/no/key": no such`, `Kubeconfig: certificate-authority: "/no/ca": no such`}},
		{&Config{Kubeconfig: file("empty", "apiVersion: v1\nkind: Config\n")}, []string{`kube: Config.Kubeconfig: "` + dir + `/empty": current-context "": there is no such context`}},
		{&Config{REST: &rest.Config{BearerTokenFile: "/no/token"}}, []string{`kube: Config.REST.BearerTokenFile: "/no/token": no such file or directory`}},
	} {
		err := c.cfg.CheckFiles()
		if c.want == nil {
			check.OK(t, err)
			continue
		}
		errs, ok := err.(setting.Errors)
		if !ok {
			t.Fatalf("%v, want %s", err, c.want)
		}
		check.ErrorHas(t, errs, c.want[0], c.want[1:]...)
		if len(errs) != len(c.want) {
			t.Errorf("%v, want %d", errs, len(c.want))
		}
	}
}

// The role of the manifest has all kinds that are read, and no others, to be listed and watched, and nothing else.
func TestRole(t *testing.T) {
	var has, want []string
	for _, o := range documents(t, string(check.Must(os.ReadFile("vxswitch.yaml"))(t))) {
		rules, _ := o["rules"].([]any)
		for _, r := range rules {
			r := r.(map[string]any)
			if fmt.Sprint(r["verbs"]) != "[list watch]" {
				t.Errorf("%v", r)
			}
			for _, name := range r["resources"].([]any) {
				has = append(has, fmt.Sprint(r["apiGroups"].([]any)[0], "/", name))
			}
		}
	}
	for i := range kinds {
		want = append(want, kinds[i].group.Group+"/"+kinds[i].name)
	}
	slices.Sort(has)
	slices.Sort(want)
	if !slices.Equal(has, want) {
		t.Errorf("%s\nwant %s", has, want)
	}
}
