package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// programs builds node and vxsctl once.
var programs = sync.OnceValues(func() (dir string, err error) {
	for path, what := range map[string]string{"vxswitchd": ".", "vxsctl": "../vxsctl"} {
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(folder, path), what).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	return folder, nil
})

// A system is a node as a program in a host of its own, with a guest behind a TAP:
//
//	guest --- TAP tap0 --- node --- eth0 --- the other node
type system struct {
	*netns.Host
	t            *testing.T
	bin          string
	file, socket string
	proc         *netns.Proc
}

// newSystem makes the host; vxsctl's words reach its node.
func newSystem(t *testing.T, n *netns.Net, name string) *system {
	t.Helper()
	bin, err := programs()
	must(t, err)
	dir, err := os.MkdirTemp(folder, name)
	must(t, err)
	return &system{Host: n.Host(name), t: t, bin: bin, file: filepath.Join(dir, "node.json"), socket: filepath.Join(dir, "sock")}
}

func (s *system) write(text string) {
	s.t.Helper()
	must(s.t, os.WriteFile(s.file, []byte(strings.ReplaceAll(text, "SOCKET", s.socket)), 0o644))
}

// run starts the node and waits until it is ready.
func (s *system) run() {
	s.t.Helper()
	s.proc = s.Start(filepath.Join(s.bin, "vxswitchd"), "-config", s.file)
	s.proc.Want("ready ")
}

// ctl runs vxsctl, which must not fail.
func (s *system) ctl(words string) string {
	s.t.Helper()
	out, err := s.tryCtl(words)
	if err != nil {
		s.t.Fatalf("vxsctl %s: %v\n%s", words, err, out)
	}
	return out
}

func (s *system) tryCtl(words string) (string, error) {
	out, err := exec.CommandContext(s.t.Context(), filepath.Join(s.bin, "vxsctl"),
		append([]string{"-socket", s.socket}, strings.Fields(words)...)...).CombinedOutput()
	return string(out), err
}

// says waits until vxsctl says what a pattern matches.
func (s *system) says(words, pattern string) {
	s.t.Helper()
	is, got := regexp.MustCompile(pattern), ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s vxsctl %s: %s", s.Name, words, got)
		}
	}()
	s.Until(fmt.Sprintf("vxsctl %s: %s", words, pattern), func() bool {
		got = s.ctl(words)
		return is.MatchString(got)
	})
}

// reload gives the node another configuration.
func (s *system) reload(text string) {
	s.t.Helper()
	s.write(text)
	s.ctl("reload")
}

// watch starts a vxsctl that goes on.
func (s *system) watch(words string) *netns.Proc {
	s.t.Helper()
	return s.Start(filepath.Join(s.bin, "vxsctl"), append([]string{"-socket", s.socket}, strings.Fields(words)...)...)
}

// entry returns where a MAC is.
func (s *system) entry(vni int, mac string) (e api.FDBEntry) {
	s.t.Helper()
	var list []api.FDBEntry
	must(s.t, json.Unmarshal([]byte(s.ctl(fmt.Sprintf("-json fdb show vni %d", vni))), &list))
	for _, x := range list {
		if x.MAC == mac {
			return x
		}
	}
	return e
}

// pair is two nodes with a guest each, on VNI 100.
type pair struct {
	a, b   *system
	ga, gb *netns.Host
}

const config = `{
  "tunnels": [{"name": "vx", "local": "LOCAL"}],
  "ports": [{"name": "tap0", "mtu": 1450}],
  "segments": [{"vni": 100, "tunnel": "vx", "flood": ["REMOTE"], "members": [{"port": "tap0"}]}],
  "control": {"socket": "SOCKET"}
}`

func configOf(local, remote string) string {
	return strings.NewReplacer("LOCAL", local, "REMOTE", remote).Replace(config)
}

// newPair starts both, with persistent TAPs that stand in the guests' namespaces as a bridge
// of the kernel's would have them.
func newPair(t *testing.T) *pair {
	t.Helper()
	n := netns.New(t)
	p := &pair{a: newSystem(t, n, "a"), b: newSystem(t, n, "b")}
	n.Link(p.a.Host, "10.0.0.1/24", p.b.Host, "10.0.0.2/24")
	p.ga, p.gb = p.a.guest(n, "ga", "192.168.7.1/24"), p.b.guest(n, "gb", "192.168.7.2/24")
	p.a.write(configOf("10.0.0.1", "10.0.0.2"))
	p.b.write(configOf("10.0.0.2", "10.0.0.1"))
	p.a.run()
	p.b.run()
	p.a.carries()
	p.b.carries()
	return p
}

// carries waits until the bridge forwards to the TAP, which it does a moment after the node has
// opened it.
func (s *system) carries() {
	s.t.Helper()
	s.Until("the bridge forwards to tap0", func() bool {
		out, _ := s.Try(s.t.Context(), "bridge", "link", "show", "dev", "tap0")
		return strings.Contains(out, "state forwarding")
	})
}

// guest makes a host behind a persistent TAP of the node's, joined by a bridge:
//
//	guest eth0 --- veth --- br0 --- tap0 --- node
func (s *system) guest(n *netns.Net, name, addr string) *netns.Host {
	s.t.Helper()
	return s.guestAt(n, name, addr, "tap0", "br0")
}

// guestAt is guest with names of the TAP and the bridge.
func (s *system) guestAt(n *netns.Net, name, addr, tap, bridge string) *netns.Host {
	s.t.Helper()
	g := n.Host(name)
	g.Quiet()
	s.Quiet()
	_, dev := n.Link(g, addr, s.Host, "")
	s.IP("tuntap", "add", tap, "mode", "tap")
	s.Bridge(bridge, dev, tap)
	g.MTU("eth0", 1450)
	return g
}
