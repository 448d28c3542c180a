package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A memoryStore is a cluster of one node, whose operator has given it an address. Each of its own calls fails once.
type memoryStore struct {
	flannel.Store
	c     *Cluster
	calls int
}

func memoryCluster(c *Cluster) (ClusterStore, error) {
	m := flannel.NewMemory(vxlanJSON)
	return &memoryStore{Store: &flannel.Registry{KV: m.KV()}, c: c}, nil
}

func (s *memoryStore) PublicIPs(context.Context) (ipv4, ipv6 netip.Addr, err error) {
	if s.calls++; s.calls == 1 {
		return ipv4, ipv6, errors.New("away")
	}
	return netip.MustParseAddr("192.0.2.99"), ipv6, nil
}

func (s *memoryStore) Available(context.Context) error {
	if s.calls++; s.calls == 3 {
		return errors.New("away again")
	}
	return os.WriteFile(s.c.NetworkFile, fmt.Appendf(nil, "%s is available", s.c.Node), 0o600)
}

func (s *memoryStore) Close() error { return nil }

// With -kube-subnet-mgr, the address is that of the node's annotation, and the node hears that pods can be made.
func TestProgramKubernetes(t *testing.T) {
	n := netns.New(t)
	h := n.Router("n1")
	n.Plug(h, "192.0.2.1/24", n.Switch("sw"))
	h.Addr("eth0", "192.0.2.99/24")
	exe := check.Must(os.Executable())(t)
	dir := t.TempDir()
	told := filepath.Join(dir, "told")
	p := h.Start("env", "VXFLANNELD_TEST=1", "NODE_NAME=worker", exe, "-kube-subnet-mgr", "-subnet-file", filepath.Join(dir, "subnet.env"), "-net-config-path", told)
	p.Want("public=192.0.2.99 ")
	h.Until("the node has heard", func() bool {
		b, _ := os.ReadFile(told)
		return string(b) == "worker is available"
	})
	if link := h.IP("-d", "addr", "show", "flannel.1"); !strings.Contains(link, "/32") {
		t.Error(link)
	}
	var errs strings.Builder
	if status := Main(t.Context(), []string{"-kube-subnet-mgr"}, []string{"NODE_NAME=worker"}, &Program{Stdout: &errs, Stderr: &errs}); status != 2 || !strings.Contains(errs.String(), "this program is built without Kubernetes") {
		t.Errorf("status %d, %s", status, errs.String())
	}
}

// noOffload is that of a kernel that looks for a while and then refuses.
func noOffload(*vswitch.Switch) (io.Closer, error) {
	time.Sleep(300 * time.Millisecond)
	return nil, errors.New("not this kernel")
}

// If the kernel refuses -datapath kernel, no pods can be made, and no device is left.
func TestProgramRefused(t *testing.T) {
	n := netns.New(t)
	h := n.Host("n1")
	n.Plug(h, "192.0.2.99/24", n.Switch("sw"))
	exe := check.Must(os.Executable())(t)
	dir := t.TempDir()
	out, err := h.Try(t.Context(), "env", "VXFLANNELD_TEST=1", "NODE_NAME=worker", exe, "-kube-subnet-mgr", "-datapath", "kernel", "-iface", "eth0",
		"-subnet-file", filepath.Join(dir, "subnet.env"), "-net-config-path", filepath.Join(dir, "told"))
	if err == nil || !strings.Contains(out, "datapath: \"kernel\": not this kernel\n") || strings.Contains(out, "ready ") {
		t.Errorf("%v, %s", err, out)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", err, list)
	}
	if got := h.IP("-o", "link", "show", "type", "tun"); got != "" {
		t.Errorf("left: %s", got)
	}
}
