package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

const ownedConfig = `{
  "segments": [{"vni": 100}, {"vni": 200}],
  "control": {"socket": "SOCKET"}
}`

// A port that another program has added, with a device in another namespace, stays until that program deletes it: over reloads,
// other configurations and restarts. Its name is an alternative one of the device.
func TestOwned(t *testing.T) {
	n := netns.New(t)
	s, guest := newSystem(t, n, "a"), n.Host("g")
	s.write(ownedConfig)
	s.run()
	c, vni := api.NewClient(s.socket), frame.VNI(100)
	add := api.PortChange{Op: api.Add, Name: "pod1", Namespace: netns.Folder + "/" + guest.NS, VNI: &vni, Owner: "somebody"}

	refused := func(what, text string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
	_, err := c.ChangePort(t.Context(), add, nil)
	refused("without a device", `port "pod1": port: TAP "pod1": there is no persistent device with this name`, err)
	if got := s.ctl("port"); strings.Contains(got, "pod1") {
		t.Errorf("%s", got)
	}
	guest.IP("tuntap", "add", "eth0", "mode", "tap")
	guest.IP("link", "property", "add", "dev", "eth0", "altname", "pod1")
	_, err = c.ChangePort(t.Context(), add, nil)
	must(t, err)

	there := func(when string) {
		t.Helper()
		ports, err := c.Ports(t.Context())
		must(t, err)
		for _, p := range ports {
			if p.Name == "pod1" && p.State == "up" && p.Owner == "somebody" && len(p.Members) == 1 && p.Members[0].VNI == 100 {
				return
			}
		}
		t.Errorf("%s: %s", when, s.ctl("port"))
	}
	there("added")
	s.ctl("reload")
	there("after a reload")
	_, err = c.SetConfig(t.Context(), []byte(strings.ReplaceAll(ownedConfig, "SOCKET", s.socket)), nil)
	must(t, err)
	there("after another configuration")
	_, err = c.SetPart(t.Context(), api.Part{List: "segments", Name: "100"}, []byte(`{"vni": 100, "ageing": "60s"}`), nil)
	must(t, err)
	there("after another segment")
	const inUse = "segments[vni 100]: is in use: ports[pod1] of somebody is in it"
	_, err = c.DeletePart(t.Context(), api.Part{List: "segments", Name: "100"}, nil)
	refused("a segment in use", inUse, err)
	s.write(strings.Replace(ownedConfig, `{"vni": 100}, `, "", 1))
	refused("a segment in use", inUse, c.Reload(t.Context()))
	there("after refusals")
	s.write(strings.Replace(ownedConfig, `"segments"`, `"ports": [{"name": "x", "owner": "y"}], "segments"`, 1))
	refused("in a file", `: ports[0].owner: "y": not in a file`, c.Reload(t.Context()))

	// It is killed, and comes back with a file that moves the socket.
	s.proc.Signal(syscall.SIGKILL)
	s.proc.Wait()
	s.write(ownedConfig)
	s.run()
	there("after a restart")
	if err := s.proc.Stop(); err != nil {
		t.Error(err)
	}
	s.run()
	there("after a stop")

	// Without its segment it is left out, with a line.
	s.proc.Stop()
	s.write(strings.Replace(ownedConfig, `{"vni": 100}, `, "", 1))
	s.run()
	if said := s.proc.Output(); !strings.Contains(said, `vxswitchd: port "pod1" of somebody is left out: `+inUse) {
		t.Errorf("%s", said)
	}
	s.write(ownedConfig)
	s.ctl("reload")
	_, err = c.ChangePort(t.Context(), add, nil)
	must(t, err)

	// One that has lost its device meanwhile is forgotten. While the node runs, it waits.
	guest.IP("link", "del", "eth0")
	fake.Until(t, "pod1 is down", func() bool { return strings.Contains(s.ctl("port"), " down ") })
	s.ctl("reload")
	if got := s.ctl("port"); !strings.Contains(got, " down ") {
		t.Errorf("%s", got)
	}
	s.proc.Stop()
	s.run()
	fake.Until(t, "pod1 is forgotten", func() bool { return !strings.Contains(s.ctl("port"), "pod1") })
	if _, err := os.Stat(s.socket + ".ports"); !os.IsNotExist(err) {
		t.Errorf("the file: %v", err)
	}

	// Nonsense where it was is no reason not to start.
	s.proc.Stop()
	must(t, os.WriteFile(s.socket+".ports", []byte(`{"ports": 7}`), 0o600))
	s.run()
	if said := s.proc.Output(); !strings.Contains(said, "ports of other programs are lost: ") {
		t.Errorf("%s", said)
	}
}
