package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/cmd/internal/file"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string // on standard error
	}{
		{"", 2, "vxswitchd: flag -config is required\n"},
		{"-config", 2, "vxswitchd: flag needs an argument: -config\n"},
		{"-config x y", 2, "vxswitchd: unexpected argument \"y\"\n"},
		{"-colour red", 2, "vxswitchd: flag provided but not defined: -colour\n"},
		{"-config /nowhere/x", 2, "vxswitchd: -config: open /nowhere/x: no such file or directory\n"},
		{"-config x -metrics 9470", 2, "vxswitchd: -metrics \"9470\": must be an address and a TCP port such as 127.0.0.1:9470, or a port such as :9470 for this host alone\n"},
		{"-config x -metrics localhost:9470", 2, "vxswitchd: -metrics \"localhost:9470\": must be an address and a TCP port such as 127.0.0.1:9470, or a port such as :9470 for this host alone\n"},
		{"-h", 0, ""},
		{"-version", 0, ""},
		{"-schema", 0, ""},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr); code != c.code || stderr.String() != c.want {
			t.Errorf("%s: %d %q", c.args, code, stderr.String())
		}
	}
}

// -check touches nothing: it says what is wrong, a line each, or what the node would do.
func TestCheck(t *testing.T) {
	name := filepath.Join(t.TempDir(), "node.json")
	check := func(text string) (int, string, string) {
		t.Helper()
		must(t, os.WriteFile(name, []byte(text), 0o644))
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"-config", name, "-check"}, &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	code, out, errs := check("{\n \"tunnels\": [{\"name\": \"a\"}],\n \"colour\": 1, \"maxMACs\": -1}")
	want := name + ":2:14: tunnels[0].local: an address of this host is required\n" +
		name + ":3:2: colour: unknown key; allowed are bgp, calico, capture, control, datapath, discovery, events, evpn, flannel, gateway, injected, maxMACs, ovsdb, policies, ports, segments, tooBig, tunnels, vrfs\n" +
		name + ":3:26: maxMACs: -1: must be 0 or more\n"
	if code != 2 || out != "" || errs != want {
		t.Errorf("%d %q\n%s\nwant\n%s", code, out, errs, want)
	}
	for _, text := range []string{"", " \n"} {
		if code, _, errs := check(text); code != 2 || errs != name+": empty file; use {} for a node that does nothing\n" {
			t.Errorf("%d %q", code, errs)
		}
	}
	for _, text := range []string{
		`{}`,
		`{"tunnels": [{"name": "a", "local": "192.0.2.1", "peers": "listed", "bfd": {"vni": 9}}, {"name": "b", "type": "ipip", "local": "192.0.2.1"}, {"name": "g", "type": "gpe", "local": "fd00::1", "ttl": "inherit"}],
		  "ports": [{"name": "t0"}, {"name": "e0", "type": "packet"}],
		  "policies": [{"name": "p", "rules": [{"action": "deny", "protocol": 6, "dstPorts": ["22", "80-90"]}], "timeouts": {"tcp": "1h"}}],
		  "segments": [{"vni": 1, "tunnel": "a", "ageing": "0s", "members": [{"port": "t0", "vlan": 7, "guard": {}}], "neighbours": {}}],
		  "control": {"socket": "/nowhere/sock"}}`,
	} {
		code, out, errs := check(text)
		if code != 0 || errs != "" {
			t.Fatalf("%d %s", code, errs)
		}
		a, err := file.Parse([]byte(out))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if again := string(effective(a)); again != out {
			t.Errorf("another time it is\n%s\nnot\n%s", again, out)
		}
		if strings.Contains(text, "1h") && !strings.Contains(out, `"tcp": "1h0m0s"`) {
			t.Errorf("%s", out)
		}
		// What was in the file is as it was there.
		b, _ := file.Parse([]byte(text))
		for i := range b.Tunnels {
			if a.Tunnels[i].Local != b.Tunnels[i].Local || b.Tunnels[i].TTL != 0 && a.Tunnels[i].TTL != b.Tunnels[i].TTL {
				t.Errorf("%+v", a.Tunnels[i])
			}
		}
		if len(b.Segments) > 0 && (a.Segments[0].Ageing != b.Segments[0].Ageing || !reflect.DeepEqual(a.Segments[0].Members, b.Segments[0].Members)) {
			t.Errorf("%+v", a.Segments[0])
		}
	}
}

// The defaults of BFD are those that a session has.
func TestEffectiveBFD(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"tunnels": [{"name": "a", "local": "192.0.2.1", "peers": "listed", "bfd": {}}]}`,
			`{"hold":"1s","interval":"300ms","multiplier":3,"vni":1}`},
		{`{"tunnels": [{"name": "a", "type": "ipip", "local": "192.0.2.1", "peers": "listed", "bfd": {"multiplier": 5}}]}`,
			`{"hold":"1s","interval":"300ms","multiplier":5}`},
		{`{"vrfs": [{"name": "v"}], "segments": [{"vni": 1, "neighbours": {},
		   "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24"], "bfd": {"hold": "0s", "interval": "1s"}}}]}`,
			`{"hold":"0s","interval":"1s","multiplier":3}`},
	} {
		cfg, err := file.Parse([]byte(c.text))
		must(t, err)
		var tree map[string]any
		must(t, json.Unmarshal(effective(cfg), &tree))
		at := objects(tree, "tunnels")
		if len(at) == 0 {
			at = []map[string]any{objects(tree, "segments")[0]["gateway"].(map[string]any)}
		}
		if got, _ := json.Marshal(at[0]["bfd"]); string(got) != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

// What never ends is no configuration, whatever kind of file it is; a pipe is one.
func TestEndlessFiles(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	must(t, os.WriteFile(long, bytes.Repeat([]byte{' '}, 101), 0o644))
	for name, want := range map[string]string{
		"/dev/zero": "-config: /dev/zero: larger than 16777216 bytes",
		dir:         "-config: read " + dir + ": is a directory",
	} {
		if _, err := load(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for limit, ok := range map[int64]bool{100: false, 101: true} {
		if _, err := readFile(long, limit, slowFile); ok != (err == nil) {
			t.Errorf("101 bytes of %d: %v", limit, err)
		}
	}
}
