package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var update = flag.Bool("update", false, "write the golden files")

// A session at a terminal of a node's host: what each command prints, and with which status it exits. Lines "a$ COMMAND" run
// on the node's host, "b$ COMMAND" on that of the kernel's VXLAN device. Times may be others, and the width of columns.
func TestSession(t *testing.T) {
	const golden = "testdata/session.txt"
	text, err := os.ReadFile(golden)
	must(t, err)
	n := netns.New(t)
	a, b := newSystem(t, n, "a"), n.Host("b")
	a.Quiet()
	b.Quiet()
	n.Link(a.Host, "10.0.0.1/24", b, "10.0.0.2/24")
	b.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.2", Remote: "10.0.0.1"})
	b.SetMAC("vx0", "02:00:00:00:00:02")
	b.Addr("vx0", "192.168.7.2/24")
	a.write(sessionConfig)
	a.run()
	a.SetMAC("tap0", "02:00:00:00:00:01")
	a.Addr("tap0", "192.168.7.1/24")
	for h, dev := range map[*netns.Host]string{a.Host: "tap0", b: "vx0"} { // or they speak up on a slow machine, and are learned again
		h.Sysctl("net.ipv4.neigh."+dev+".base_reachable_time_ms", "3600000")
		h.Sysctl("net.ipv4.neigh."+dev+".delay_first_probe_time", "3600")
		h.Sysctl("net.ipv6.conf."+dev+".router_solicitations", "0")
	}

	env := []string{"PATH=" + a.bin + ":" + os.Getenv("PATH"), "VXSCTL_SOCKET=" + a.socket, "HOME=" + filepath.Dir(a.file)}
	var out strings.Builder
	commands := 0
	for _, line := range strings.Split(string(text), "\n") {
		host, command, ok := strings.Cut(line, "$ ")
		if !ok || len(host) != 1 {
			if commands == 0 { // what the file says of itself
				fmt.Fprintln(&out, line)
			}
			continue
		}
		fmt.Fprintln(&out, line)
		commands++
		on := map[string]*netns.Host{"a": a.Host, "b": b}[host]
		printed, err := on.Try(t.Context(), "env", append(env, "sh", "-c", "cd "+filepath.Dir(a.file)+"; "+command+" 2>&1")...)
		out.WriteString(strings.NewReplacer(a.socket, "/run/vxswitch/vxswitchd.sock", a.file, "node.json").Replace(printed))
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			fmt.Fprintf(&out, "exit status %d\n", exit.ExitCode())
		} else if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if commands < 60 {
		t.Errorf("%d commands, want 60", commands)
	}
	got, want := settled(out.String()), settled(string(text))
	if *update && got != want {
		must(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	command := ""
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g) || i >= len(w):
			t.Fatalf("after %q: %d lines, want %d", command, len(g), len(w))
		case g[i] != w[i]:
			t.Fatalf("%s\ngot  %s\nwant %s", command, g[i], w[i])
		case strings.Contains(g[i], "$ "):
			command = g[i]
		}
	}
}

// settled returns text without what differs from one run to the next.
func settled(text string) string {
	for expr, with := range map[string]string{`\b\d+(\.\d+)?(ms|s|µs)\b`: "0s", `"age":[0-9.]+`: "age", ` {2,}`: "  ", `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`: "TIME"} {
		text = regexp.MustCompile(expr).ReplaceAllString(text, with)
	}
	return text
}

const sessionConfig = `{
  "tunnels": [{"name": "vx", "local": "10.0.0.1"}],
  "ports": [{"name": "tap0", "mtu": 1450}],
  "segments": [
    {"vni": 100, "tunnel": "vx", "flood": ["10.0.0.2"], "members": [{"port": "tap0"}], "neighbours": {"mode": "suppress"},
     "gateway": {"vrf": "red", "addresses": ["192.168.7.254/24"], "mac": "02:00:00:00:00:fe"}},
    {"vni": 200, "tunnel": "vx"}
  ],
  "vrfs": [{"name": "red", "routes": [
    {"prefix": "10.7.0.0/16", "via": [{"segment": 100, "ip": "192.168.7.2"}]}, {"prefix": "10.8.0.0/16"}
  ]}],
  "control": {"socket": "SOCKET"}
}`
