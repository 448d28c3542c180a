package kubelab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Version is that of Kubernetes.
const Version = "v1.37.2"

const module = "k8s.io/kubernetes"

var building sync.Mutex

// once builds what is not there yet.
func once(path string) error {
	building.Lock()
	defer building.Unlock()
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return build(path)
}

// Path returns that of a kube-apiserver: the one in PATH, or else one in the user's cache. With VXSWITCH_KUBE=build in the environment
// one is built there from its module, which takes half an hour of a processor, and then stays. If there is none the test is skipped, in
// CI as well, where that is too long.
func Path(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("kube-apiserver"); err == nil {
		return path
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("lab: no cache: ", err)
	}
	path := filepath.Join(cache, "vxswitch", "kube-apiserver-"+Version)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("VXSWITCH_KUBE") != "build" {
		t.Skip("lab: there is no kube-apiserver in PATH or in the cache; VXSWITCH_KUBE=build builds one, in half an hour")
	}
	if err := once(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds kube-apiserver in a module that requires Kubernetes' and replaces what that has in folders by what is published.
func build(path string) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), "build")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	run := func(args ...string) ([]byte, error) {
		c := exec.Command("go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off", "CGO_ENABLED=0")
		var errs bytes.Buffer
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			err = fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, errs.String())
		}
		return out, err
	}
	out, err := run("mod", "download", "-json", module+"@"+Version)
	if err != nil {
		return err
	}
	var from struct{ GoMod string }
	if err := json.Unmarshal(out, &from); err != nil {
		return err
	}
	if out, err = run("mod", "edit", "-json", from.GoMod); err != nil {
		return err
	}
	var mod struct {
		Go      string
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return err
	}
	text := fmt.Sprintf("module apiserver\n\ngo %s\n\nrequire %s %s\n\n", mod.Go, module, Version)
	for _, r := range mod.Replace {
		if strings.HasPrefix(r.New.Path, "./") {
			text += fmt.Sprintf("replace %s => %[1]s v0%s\n", r.Old.Path, strings.TrimPrefix(Version, "v1"))
		}
	}
	files := map[string]string{"go.mod": text, "tools.go": "//go:build tools\n\npackage tools\n\nimport _ \"" + module + "/cmd/kube-apiserver\"\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if _, err := run("mod", "tidy"); err != nil {
		return err
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const x = " -X k8s.io/component-base/version."
	made := filepath.Join(dir, "kube-apiserver")
	if _, err := run("build", "-ldflags", "-s -w"+x+"gitVersion="+Version+x+"gitMajor="+major+x+"gitMinor="+minor, "-o", made, module+"/cmd/kube-apiserver"); err != nil {
		return err
	}
	return os.Rename(made, path)
}
