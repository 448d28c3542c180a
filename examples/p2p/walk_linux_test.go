package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The walk in README.md is run as it stands, in namespaces of its own.
func TestWalk(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	left, right := n.Host("left"), n.Host("right")
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\n"
	for i, block := range strings.Split(string(text), "```sh\n") {
		if i > 0 {
			code, _, _ := strings.Cut(block, "```")
			script += code
		}
	}
	for _, r := range [][2]string{
		{"ip netns add left\n", ""}, {"ip netns add right\n", ""}, {"ip netns del left\n", ""}, {"ip netns del right\n", ""}, // they are there
		{"-n left ", "-n " + left.NS + " "}, {"exec left ", "exec " + left.NS + " "},
		{"-n right ", "-n " + right.NS + " "}, {"exec right ", "exec " + right.NS + " "}, {"netns right\n", "netns " + right.NS + "\n"},
		{"go build -o p2p ./examples/p2p\n", "cp " + path + " p2p\n"},
	} {
		if !strings.Contains(script, r[0]) {
			t.Fatalf("no %q in the walk", r[0])
		}
		script = strings.ReplaceAll(script, r[0], r[1])
	}
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = t.TempDir()
	timer := time.AfterFunc(netns.Timeout, func() { c.Process.Kill() })
	defer timer.Stop()
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"ready dev=vxs0 type=vxlan id=100 local=10.0.0.1:4789 mtu=1450\n", "3 packets transmitted, 3 received", "iperf Done.",
		" dst 10.0.0.1 ", `"dest":"10.0.0.2:4789","origin":"learned"`, "1 packets transmitted, 1 received",
		"From 192.168.7.2 icmp_seq=1 Frag needed and DF set (mtu = 1450)",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Count(string(out), "stats {") != 2 {
		t.Errorf("not two lines of statistics in\n%s", out)
	}
}
