package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

const ovsdbFile = `{
  "tunnels": [{"name": "vx", "local": "10.0.0.1", "peers": "listed-per-vni"}],
  "ports": [{"name": "p1"}, {"name": "p2"}],
  "segments": [{"vni": 7, "members": [{"port": "p2"}]}],
  "ovsdb": {"target": "unix:DB", "name": "leaf", "tunnel": "vx", "ports": ["p1"]},
  "control": {"socket": "SOCKET"}
}`

// The section ovsdb beside ovsdb-server: a Logical_Switch becomes a segment, also after a reload with another port; one with a VNI of
// the file is refused and named; without the section all of it is gone, and the file's own segment stays.
func TestOVSDB(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	leaf := newSystem(t, n, "leaf")
	n.Link(leaf.Host, "10.0.0.1/24", n.Host("other"), "10.0.0.2/24")
	dir := filepath.Dir(leaf.file)
	sock := filepath.Join(dir, "db")
	if out, err := exec.Command("ovsdb-tool", "create", filepath.Join(dir, "vtep.db"), "/usr/share/openvswitch/vtep.ovsschema").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := strings.ReplaceAll(ovsdbFile, "DB", sock)
	leaf.write(text)
	leaf.run()
	c := api.NewClient(leaf.socket)
	state := func(what string, ok func(o api.OVSDB) bool) {
		t.Helper()
		last := ""
		defer func() {
			if t.Failed() {
				t.Log(last)
			}
		}()
		leaf.Until(what, func() bool {
			o, err := c.OVSDB(t.Context())
			last = fmt.Sprintf("%+v %v", o, err)
			return err == nil && ok(o)
		})
	}
	state("no connection", func(o api.OVSDB) bool { return o.State == "connecting" && strings.Contains(o.Error, sock) })
	leaf.Start("ovsdb-server", "--remote=punix:"+sock, "--unixctl="+filepath.Join(dir, "ctl"), "--no-chdir", filepath.Join(dir, "vtep.db"))
	state("a connection", func(o api.OVSDB) bool {
		return o.State == "connected" && o.Error == "" && o.Switch == "leaf" && o.Target == "unix:"+sock
	})
	ctl := func(words string) {
		t.Helper()
		if out, err := exec.Command("vtep-ctl", append([]string{"--timeout=10", "--db=unix:" + sock}, strings.Fields(words)...)...).CombinedOutput(); err != nil {
			t.Fatalf("vtep-ctl %s: %v: %s", words, err, out)
		}
	}
	ctl("add-ls ls0 -- set Logical_Switch ls0 tunnel_key=5000 -- bind-ls leaf p1 0 ls0 -- add-mcast-remote ls0 unknown-dst 10.0.0.2")
	ctl("add-ls ls7 -- set Logical_Switch ls7 tunnel_key=7 -- bind-ls leaf p1 7 ls7 -- add-ls none -- bind-ls leaf p1 8 none")
	state("one segment, one refused, one left out", func(o api.OVSDB) bool {
		return o.Segments == 1 && o.Rows == 1 && len(o.Refused) == 1 && strings.Contains(o.Refused["ls7"], "7") && o.LeftOut["no-tunnel-key"] == 1
	})
	for words, want := range map[string]string{
		"ovsdb":          `state +connected since [-\d: ]+\nerror +-\ntarget +unix:` + sock + `\nswitch +leaf\nlogical switches +1\nrows of the controller +1\nhosts of this node +\d+\nleft out, no-tunnel-key +1\nrefused, ls7 +\S.*\ntransactions +\d+\nfailed transactions +0\n$`,
		"ovsdb left-out": `Logical_Switch +[-0-9a-f]{36} +no-tunnel-key\n$`,
		"flood":          `5000 +- +vx +10\.0\.0\.2:4789`,
	} {
		if got := leaf.ctl(words); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("vxsctl %s: want %s\n%s", words, want, got)
		}
	}
	if out, err := leaf.tryCtl("port del p1"); err == nil || !strings.Contains(out, `there is no "p1", which owner ovsdb has in VNI 5000`) {
		t.Errorf("%v %s", err, out)
	}

	leaf.write(strings.Replace(strings.Replace(text, `["p1"]`, `["p1", "p3"]`, 1), `{"name": "p2"}`, `{"name": "p2"}, {"name": "p3"}`, 1))
	leaf.ctl("reload")
	leaf.Until("p3 in the database", func() bool {
		out, err := exec.Command("vtep-ctl", "--timeout=10", "--db=unix:"+sock, "list-ports", "leaf").CombinedOutput()
		return err == nil && strings.Contains(string(out), "p3")
	})
	ctl("bind-ls leaf p3 0 ls0")
	leaf.Until("p3 in the segment", func() bool { return regexp.MustCompile(`(?m)^p3 .*5000`).MatchString(leaf.ctl("port")) })

	leaf.write(text) // p3 leaves section and node at once
	leaf.ctl("reload")
	state("the segment again", func(o api.OVSDB) bool { return o.Segments == 1 && o.LeftOut["unknown-port"] == 1 })

	leaf.write(regexp.MustCompile(`  "ovsdb".*\n`).ReplaceAllString(text, ""))
	leaf.ctl("reload")
	if got := leaf.ctl("vni"); strings.Contains(got, "5000") || !strings.Contains(got, "7") {
		t.Error(got)
	}
	if out, err := leaf.tryCtl("ovsdb"); err == nil || !strings.Contains(out, "the configuration has no section ovsdb") {
		t.Error(out)
	}
}

// The section ovsdb with a database of its own: a controller writes to the node, and what it wrote is there after a new start.
func TestOVSDBListen(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	leaf := newSystem(t, n, "leaf")
	n.Link(leaf.Host, "10.0.0.1/24", n.Host("other"), "10.0.0.2/24")
	dir := filepath.Dir(leaf.file)
	sock := filepath.Join(dir, "db")
	leaf.write(strings.Replace(ovsdbFile, `"target": "unix:DB"`, `"listen": ["punix:`+sock+`"], "database": "`+filepath.Join(dir, "vtep.db")+`"`, 1))
	leaf.run()
	leaf.Until("a connection", func() bool { return strings.Contains(leaf.ctl("ovsdb"), "connected since") })
	if got := leaf.ctl("ovsdb"); !regexp.MustCompile(`target +punix:` + sock + `\nswitch +leaf\n`).MatchString(got) {
		t.Error(got)
	}
	if out, err := exec.Command("vtep-ctl", "--timeout=10", "--db=unix:"+sock, "add-ls", "ls0", "--", "set", "Logical_Switch", "ls0", "tunnel_key=5000", "--", "bind-ls", "leaf", "p1", "0", "ls0", "--",
		"add-mcast-remote", "ls0", "unknown-dst", "10.0.0.2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	flood := func() bool { return regexp.MustCompile(`5000 +- +vx +10\.0\.0\.2:4789`).MatchString(leaf.ctl("flood")) }
	leaf.Until("the flood list", flood)

	text := strings.Replace(ovsdbFile, `"target": "unix:DB"`, `"listen": ["punix:`+sock+`2"], "database": "`+filepath.Join(dir, "vtep.db")+`"`, 1)
	leaf.write(text)
	leaf.ctl("reload") // the section begins anew, with the file
	leaf.Until("another socket", func() bool { return strings.Contains(leaf.ctl("ovsdb"), "punix:"+sock+"2") && flood() })
}
