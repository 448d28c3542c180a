package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// systemd has nothing to say about the unit.
func TestService(t *testing.T) {
	netns.Tool(t, "systemd-analyze")
	text, err := os.ReadFile("vxswitchd.service")
	must(t, err)
	// The program is installed elsewhere; any will do to look at the unit.
	unit := filepath.Join(t.TempDir(), "vxswitchd.service")
	must(t, os.WriteFile(unit, []byte(strings.Replace(string(text), "/usr/local/bin/vxswitchd", "/bin/true", 1)), 0o644))
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// The unit's capabilities are enough, for a user who has nothing else.
func TestServiceCapabilities(t *testing.T) {
	netns.RequireRoot(t)
	netns.Tool(t, "setpriv")
	text, _ := os.ReadFile("vxswitchd.service")
	m := regexp.MustCompile(`(?m)^AmbientCapabilities=(.*)$`).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("the unit has no capabilities")
	}
	caps := "-all"
	for c := range strings.FieldsSeq(m[1]) {
		caps += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	n := netns.New(t)
	s := newSystem(t, n, "a")
	s.Addr("lo", "10.0.0.1/32")
	g := n.Host("g")
	n.Link(g, "192.168.7.1/24", s.Host, "")
	tap, member, ports := "", "", "ports=1"
	if f, err := os.Stat("/dev/net/tun"); err == nil && f.Mode().Perm()&6 == 6 { // as udev makes it
		tap, member, ports = `, {"name": "tap0", "mtu": 1400, "queues": 2}`, `, {"port": "tap0"}`, "ports=2"
	}
	s.write(strings.NewReplacer("TAP", tap, "MEMBER", member).Replace(`{
  "tunnels": [{"name": "vx", "local": "10.0.0.1", "port": 790, "mark": 7}, {"name": "ip", "type": "ipip", "local": "10.0.0.1"}],
  "ports": [{"name": "eth0", "type": "packet", "promiscuous": true}TAP],
  "segments": [{"vni": 100, "tunnel": "vx", "members": [{"port": "eth0"}MEMBER],
    "gateway": {"vrf": "red", "addresses": ["192.168.7.9/24"], "mac": "02:00:00:00:00:09"}}],
  "vrfs": [{"name": "red"}],
  "control": {"socket": "SOCKET"}
}`))
	for _, dir := range []string{folder, filepath.Dir(s.file)} {
		os.Chmod(dir, 0o777)
	}
	s.proc = s.Start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set="+caps, "--inh-caps="+caps, "--ambient-caps="+caps,
		filepath.Join(s.bin, "vxswitchd"), "-config", s.file)
	s.proc.Want("ready segments=1 " + ports + " tunnels=2 ")
	g.Ping("192.168.7.9", 1)
	if err := s.proc.Stop(); err != nil {
		t.Error(err)
	}
}
