package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// named is a configuration with names that a shell must not run.
const named = `{"ports": [{"name": "tap0"}, {"name": "$(touch pwned)"}, {"name": "a b;touch pwned"}], "tunnels": [{"name": "vx"}],
  "segments": [{"vni": 100}, {"vni": 7}], "vrfs": [{"name": "red"}]}`

// Words are those that the parser of a command takes, and names of the node.
func TestComplete(t *testing.T) {
	f := newFake(t)
	f.answer("/v1/config", named)
	f.answer("/v1/waiting", `[{"proto": "evpn"}, {"proto": "config"}, {"proto": "evpn"}]`)
	f.answer("/v1/evpn/peers", `[{"address": "192.0.2.1"}, {"interface": "eth0"}]`)
	f.answer("/v1/bgp/peers", `[{"address": "192.0.2.2"}]`)
	for _, c := range []struct {
		words, want string
		status      int
	}{
		{"", strings.Join(slices.Sorted(slices.Values(strings.Split(objects, ", "))), " "), 0},
		{"fd", "fdb", 0},
		{"fdb ", "add append del dev replace show vni", 0},
		{"fdb show ", "dev vni", 0},
		{"fdb dev tap0 ", "vni", 0},
		{"fdb vni ", "100 7", 0},
		{"fdb add 02:00:00:00:00:01 d", "dev dst", 0},
		{"fdb add 02:00:00:00:00:01 dst 10.0.0.2 tunnel ", "vx", 0},
		{"fdb add 02:00:00:00:00:01 vni x ", "", 0}, // wrong
		{"neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 r", "router", 0},
		{"neigh add 10.0.0.1 router ", "dev dst lladdr tunnel vni", 0},
		{"route add ", "blackhole", 0},
		{"route add 10.0.0.0/8 vrf ", "red", 0},
		{"port del t", "tap0", 0},
		{"port add x type ", "interface packet tap tun veth", 0},
		{"config del segments ", "100 7", 0},
		{"config apply p", "policies ports", 3},
		{"capture tunnel ", "vx", 0},
		{"capture port ", "$(touch pwned) a b;touch pwned tap0", 0},
		{"help fd", "fdb", 0},
		{"capture port tap0 -w ", "", 3},
		{"capture port t", "tap0", 0}, // a tunnel is none
		{"capture port v", "", 0},
		{"fdb add 02:00:00:00:00:01 dev v", "", 0},
		{"fdb show dev v", "vx", 0},
		{"trace dest v", "vx", 0},
		{"waiting proto ", "config evpn", 0},
		{"evpn routes peer ", "192.0.2.1", 0},
		{"bgp ", "peers routes show", 0},
		{"bgp routes peer ", "192.0.2.2", 0},
		{"reload ", "", 0},
		{"completion ", "bash fish zsh", 0},
		{"-v", "-version", 0},
		{"-socket ", "", 3},
		{"colour ", "", 0},
	} {
		words := strings.Split(c.words, " ")
		status, out, errs := do(t.Context(), append([]string{"complete", "--", "-socket", f.socket}, words...)...)
		if got := strings.Join(strings.Fields(out), " "); status != c.status || got != c.want || errs != "" {
			t.Errorf("%q: %d %q %q, want %d %q", c.words, status, got, errs, c.status, c.want)
		}
		if asked := f.last(); asked != "" && asked != "GET /v1/config" && asked != "GET /v1/waiting" && !strings.HasSuffix(asked, "/peers") {
			t.Errorf("%q: %s", c.words, asked)
		}
	}
	for _, socket := range []string{"/nowhere/s", "/dev/null"} { // no node
		if status, out, errs := do(t.Context(), "complete", "--", "-socket", socket, "fdb", "vni", ""); status != 0 || out != "" || errs != "" {
			t.Errorf("%s: %d %q %q", socket, status, out, errs)
		}
	}
}

// The shells offer those words, quote what is special to them, and run nothing.
func TestShells(t *testing.T) {
	f := newFake(t)
	f.answer("/v1/config", named)
	bin, dir := t.TempDir(), t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, shell := range []struct {
		name   string
		script func(words []string) string
		odd    []string // how it writes the odd names
	}{
		{"bash", func(words []string) string {
			line := "vxsctl " + strings.Join(words, " ")
			return fmt.Sprintf(`source <(vxsctl completion bash); compopt() { echo FILES; }; COMP_LINE='%s' COMP_POINT=%d; _vxsctl; printf '%%s\n' "${COMPREPLY[@]}"`, line, len(line))
		}, []string{`\$\(touch\ pwned\)`, `a\ b\;touch\ pwned`}},
		{"zsh", func(words []string) string {
			return fmt.Sprintf(`compdef() {}; compadd() { shift; print -rl -- "$@" }; _files() { print FILES }; source <(vxsctl completion zsh); words=(vxsctl '%s'); CURRENT=%d; _vxsctl; true`,
				strings.Join(words, "' '"), len(words)+1)
		}, []string{"$(touch pwned)", "a b;touch pwned"}}, // compadd quotes them
		{"fish", func(words []string) string {
			return fmt.Sprintf(`function __fish_complete_path; echo FILES; end; vxsctl completion fish | source; complete -C 'vxsctl %s'`, strings.Join(words, " "))
		}, []string{"$(touch pwned)", "a b;touch pwned"}}, // complete -C prints them as they are
	} {
		path, err := exec.LookPath(shell.name)
		if err != nil {
			if os.Getenv("CI") != "" {
				t.Errorf("%v: run make tools", err)
			}
			t.Logf("%v", err)
			continue
		}
		for line, want := range map[string][]string{
			"fdb ":                              {"add", "append", "del", "dev", "replace", "show", "vni"},
			"fdb vni ":                          {"100", "7"},
			"fdb add 02:00:00:00:00:01 dst 10.": nil,
			"fdb add 02:00:00:00:00:01 dev ":    append([]string{"tap0"}, shell.odd...),
			"capture -w ":                       {"FILES"},
			"fdb $(touch pwned) ":               nil,
			"neigh add fd00::1 lladdr 02:00:00:00:00:01 vn": {"vni"},
		} {
			if shell.name == "zsh" && strings.Contains(line, "$") {
				continue // the words of zsh are quoted here
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			c := exec.CommandContext(ctx, path, "-c", shell.script(strings.Split(line, " ")))
			c.Dir, c.Env = dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "VXSCTL_SOCKET=" + f.socket, "LC_ALL=C.UTF-8"}
			out, err := c.CombinedOutput()
			cancel()
			got := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
			slices.Sort(got)
			slices.Sort(want)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q: %v %q, want %q", shell.name, line, err, got, want)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
			t.Errorf("%s ran a name", shell.name)
		}
	}
}
