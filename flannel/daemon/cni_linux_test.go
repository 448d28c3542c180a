package daemon

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/cni"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The CNI plugins flannel and bridge work unchanged with the file that the program writes: a pod that they make reaches one of a
// flanneld node, and is reached. They take it away again.
func TestCNI(t *testing.T) {
	bin, err := cni.Plugins("meta/flannel", "main/bridge", "ipam/host-local")
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
