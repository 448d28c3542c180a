package flanneldlab

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Version is that of flannel.
const Version = "v0.28.10"

const module = "github.com/flannel-io/flannel"

var once = sync.OnceValues(build)

// Build returns the path of flanneld. It is built from its module when it is first needed, which takes a minute or two and a C
// compiler, and kept in the user's cache. If that cannot be, the test is skipped, or, with CI=true in the environment, fails.
func Build(t testing.TB) string {
	t.Helper()
	path, err := once()
	netns.Require(t, err)
	return path
}

func build() (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(cache, "vxswitch", "flanneld-"+Version)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "flanneld")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	run := func(dir string, args ...string) ([]byte, error) {
		c := exec.Command("go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
		out, err := c.Output()
		if x, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, netns.Tail(append(out, x.Stderr...)))
		}
		return out, err
	}
	out, err := run(dir, "mod", "download", "-json", module+"@"+Version)
	if err != nil {
		return "", err
	}
	var from struct{ Dir string }
	if err := json.Unmarshal(out, &from); err != nil {
		return "", err
	}
	src := filepath.Join(dir, "src")
	if err := copyTree(src, from.Dir); err != nil {
		return "", err
	}
	if err := without(filepath.Join(src, "main.go"), "backend/tencentvpc"); err != nil {
		return "", err
	}
	made := path + "." + filepath.Base(dir)
	if _, err := run(src, "build", "-o", made, "."); err != nil {
		return "", err
	}
	return path, os.Rename(made, path)
}

// copyTree copies files, so that they can be changed.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch at := filepath.Join(to, rel); {
		case d.IsDir():
			return os.MkdirAll(at, 0o755)
		case !d.Type().IsRegular():
			return nil
		default:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(at, b, 0o644)
		}
	})
}

// without removes the lines with a text: a module for one cloud, which not every module proxy has.
func without(file, text string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var keep []string
	for _, line := range strings.SplitAfter(string(b), "\n") {
		if !strings.Contains(line, text) {
			keep = append(keep, line)
		}
	}
	return os.WriteFile(file, []byte(strings.Join(keep, "")), 0o644)
}

// A Node is a flanneld.
type Node struct {
	*netns.Proc
	File string // with its subnet
	h    *netns.Host
}

// Start runs flanneld with leases in etcd: see Run.
func Start(t testing.TB, h *netns.Host, etcd string, args ...string) *Node {
	t.Helper()
	return Run(t, h, nil, append([]string{"-etcd-endpoints", etcd}, args...)...)
}

// Run runs flanneld in a host with the address of its device eth0 and more in its environment, and waits for its subnet. The network
// must have EnableNFTables.
func Run(t testing.TB, h *netns.Host, env []string, args ...string) *Node {
	t.Helper()
	path := Build(t)
	netns.Tool(t, "nft")
	_, err := exec.LookPath("iptables") // it cleans up what it does not use
	netns.Require(t, err)
	n := &Node{File: filepath.Join(t.TempDir(), "subnet.env"), h: h}
	n.Proc = h.Start("env", slices.Concat(env, []string{path, "-iface", "eth0", "-subnet-file", n.File, "-iptables-forward-rules=false"}, args)...)
	n.Want("Running backend.")
	return n
}

// Value returns a value of the subnet file, such as FLANNEL_SUBNET.
func (n *Node) Value(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(n.File)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && k == name {
			return v
		}
	}
	t.Fatalf("lab: flanneld: no %s in %s", name, b)
	return ""
}
