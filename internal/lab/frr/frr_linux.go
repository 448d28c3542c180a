package frr

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A Daemon is a program of FRR, such as "zebra", its configuration, and more arguments.
type Daemon struct {
	Name, Config string
	Args         []string
}

// FRR is what runs in a host until the test ends.
type FRR struct {
	Host   *netns.Host
	folder string
	runs   map[string]*netns.Proc
}

// Start starts daemons one after the other, zebra first, and waits until each takes commands.
func Start(t testing.TB, h *netns.Host, daemons ...Daemon) *FRR {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	folder, err := os.MkdirTemp("", "frr") // short: sockets are in it
	must(err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	who, err := user.Lookup("frr")
	netns.Require(t, err)
	uid, err := strconv.Atoi(who.Uid)
	must(err)
	must(os.Chown(folder, uid, -1))
	f := &FRR{h, folder, map[string]*netns.Proc{}}
	for _, d := range daemons {
		f.Start(t, d)
	}
	return f
}

// Start starts a daemon, perhaps again after Kill.
func (f *FRR) Start(t testing.TB, d Daemon) {
	t.Helper()
	file := func(name string) string { return filepath.Join(f.folder, name) }
	program := "/usr/lib/frr/" + d.Name
	if _, err := os.Stat(program); err != nil {
		netns.Require(t, err)
	}
	if err := os.WriteFile(file(d.Name+".conf"), []byte(d.Config), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--vty_socket", f.folder, "-z", file("zserv.api"), "-i", file(d.Name + ".pid"), "-f", file(d.Name + ".conf"), "--log", "stdout", "-P", "0"}
	if d.Name == "bfdd" {
		args = append(args, "--bfdctl", file("bfdd.sock"))
	}
	args = append(args, d.Args...)
	f.runs[d.Name] = f.Host.Start(program, args...)
	f.Host.Until(d.Name+" runs", func() bool { _, err := os.Stat(file(d.Name + ".vty")); return err == nil })
}

// PID returns the process ID of a daemon.
func (f *FRR) PID(name string) int { return f.runs[name].PID() }

// Kill kills a daemon, which has no time to say anything.
func (f *FRR) Kill(name string) {
	f.runs[name].Kill()
	os.Remove(filepath.Join(f.folder, name+".vty"))
	os.Remove(filepath.Join(f.folder, name+".pid"))
}

// Do runs commands of vtysh, and returns what they print.
func (f *FRR) Do(commands ...string) string {
	args := []string{"--vty_socket", f.folder}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	return f.Host.Run("vtysh", args...)
}

// HasEVPN reports whether bgpd has a route of EVPN, by how it writes its key, such as "[3]:[0]:[32]:[192.0.2.1]".
func (f *FRR) HasEVPN(key string) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(f.Do("show bgp l2vpn evpn json")), &all) != nil {
		return false
	}
	for _, of := range all {
		if strings.Contains(string(of), strconv.Quote(key)) {
			return true
		}
	}
	return false
}
