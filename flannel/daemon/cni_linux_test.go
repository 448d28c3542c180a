package daemon

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// cniPlugins are built when they are first needed, and kept in the user's cache. Version 0.9.1 is the last of these with
// the plugin flannel; the later flannel-io/cni-plugin is not at every module proxy. It reads the same file.
var cniPlugins = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "vxswitch", "cni-flannel")
	for _, p := range []string{"meta/flannel@v0.9.1", "main/bridge@v0.9.1", "ipam/host-local@v0.9.1"} {
		name, _, _ := strings.Cut(filepath.Base(p), "@")
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			continue
		}
		c := exec.Command("go", "install", "github.com/containernetworking/plugins/plugins/"+p)
		c.Dir = os.TempDir()
		c.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-trimpath", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", c, err, out)
		}
	}
	return dir, nil
})

// The CNI plugins flannel and bridge work unchanged with the file that the program writes: a pod that they make reaches one of a
// flanneld node, and is reached. They take it away again.
func TestCNI(t *testing.T) {
	bin, err := cniPlugins()
	netns.Require(t, err)
	l := flanneldlab.New(t, vxlanJSON)
	b := l.Theirs(2)
	p := start(t, l, 11, "-ip-masq")
	_, subnet := p.read(t)
	pod, dir := l.Net.Host("pod"), t.TempDir()

	text := fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "cbr0", "type": "flannel", "subnetFile": %q, "dataDir": %q,
		"ipam": {"type": "host-local", "dataDir": %q}, "delegate": {"isDefaultGateway": true, "hairpinMode": true}}`, p.file, dir+"/flannel", dir+"/ipam")
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cni := func(command string) string {
		t.Helper()
		return p.host.Run("env", "CNI_COMMAND="+command, "CNI_CONTAINERID=pod", "CNI_IFNAME=eth0", "CNI_NETNS="+netns.Folder+"/"+pod.NS, "CNI_PATH="+bin,
			"sh", "-c", filepath.Join(bin, "flannel")+" <"+conf)
	}
	var result struct {
		IPs []struct{ Address netip.Prefix }
	}
	if out := cni("ADD"); json.Unmarshal([]byte(out), &result) != nil || len(result.IPs) != 1 || !subnet.IPv4.Contains(result.IPs[0].Address.Addr()) {
		t.Fatalf("%s", out)
	}
	reach(t, pod, b.Pod.IPv4.String())
	reach(t, b.Pod.Host, result.IPs[0].Address.Addr().String())
	if ttl := pod.PingTTL(b.Pod.IPv4.String()); ttl != 62 {
		t.Errorf("TTL %d", ttl)
	}
	pod.Transfer(b.Pod.Host, b.Pod.IPv4.String()+":7000", 1<<20)
	if got := pod.Run("cat", "/sys/class/net/eth0/mtu"); got != "1450\n" {
		t.Errorf("MTU %s", got)
	}
	cni("DEL")
	if out, err := pod.Try(t.Context(), "ip", "link", "show", "eth0"); err == nil {
		t.Errorf("%s", out)
	}
}
