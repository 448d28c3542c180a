package netns

import (
	"fmt"
	"path/filepath"
	"strings"
)

// An OVS describes an Open vSwitch with its user-space datapath.
type OVS struct {
	Local  string // underlay addresses, CIDR, commas between them
	Under  string // underlay device
	Inside string // device of the guest
	MTU    int    // of the underlay
}

// An OpenVSwitch is one that runs.
type OpenVSwitch struct {
	h   *Host
	dir string
}

// OVS runs Open vSwitch inside the host, with files in a folder of the test. Its bridge
// phy has the underlay device and the underlay addresses, since the datapath sends tunnel
// packets by the addresses of its own bridges; bridge br0 has the guest. Tunnels are made by
// VXLAN.
//
// It drops packets with unfinished checksums: see [Host.TxOff].
func (h *Host) OVS(o OVS) *OpenVSwitch {
	h.t.Helper()
	Tool(h.t, "ovs-vsctl")
	s := &OpenVSwitch{h, h.t.TempDir()}
	db := filepath.Join(s.dir, "conf.db")
	s.run("ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")
	s.start("ovsdb-server", "-vconsole:info", "--remote=p"+s.socket(), db).Want("ovsdb-server (Open vSwitch)")
	s.Set("--no-wait", "init")
	s.start("ovs-vswitchd", "-vconsole:info", "--pidfile", s.socket()).Want("connected")
	s.Set("--", "add-br", "phy", "--", "set", "bridge", "phy", "datapath_type=netdev",
		"--", "add-port", "phy", o.Under,
		"--", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
		"--", "add-port", "br0", o.Inside)
	h.MTU("phy", o.MTU)
	h.Up("phy")
	h.Addr("phy", o.Local)
	h.Up("br0")
	return s
}

// VXLAN makes the tunnel port of br0 with this name anew, with options such as "csum=true"
// and columns of the port such as "tag=10".
func (s *OpenVSwitch) VXLAN(port, remote string, vni int, settings ...string) {
	s.h.t.Helper()
	options := []string{"options:remote_ip=\"" + remote + "\"", fmt.Sprintf("options:key=%d", vni), "options:dst_port=4789"}
	var columns []string
	for _, o := range settings {
		switch name, _, _ := strings.Cut(o, "="); name {
		case "tag", "trunks", "vlan_mode":
			columns = append(columns, o)
		default:
			options = append(options, "options:"+o)
		}
	}
	s.Set("--if-exists", "del-port", "br0", port) // by itself: OVS 3.1 loses a port that changes its exts
	args := []string{"--", "add-port", "br0", port}
	args = append(append(args, columns...), "--", "set", "interface", port, "type=vxlan")
	s.Set(append(args, options...)...)
}

// Set runs ovs-vsctl, which waits until the switch has done it.
func (s *OpenVSwitch) Set(args ...string) string {
	s.h.t.Helper()
	return s.run("ovs-vsctl", append([]string{"--db=" + s.socket(), "--retry", "--timeout=10"}, args...)...)
}

// Flows runs ovs-ofctl.
func (s *OpenVSwitch) Flows(args ...string) string {
	s.h.t.Helper()
	return s.run("ovs-ofctl", args...)
}

// Ask runs ovs-appctl: "fdb/show br0".
func (s *OpenVSwitch) Ask(args ...string) string {
	s.h.t.Helper()
	return s.run("ovs-appctl", args...)
}

func (s *OpenVSwitch) socket() string { return "unix:" + filepath.Join(s.dir, "db.sock") }

func (s *OpenVSwitch) run(name string, args ...string) string {
	s.h.t.Helper()
	return s.h.Run("env", s.with(name, args)...)
}

func (s *OpenVSwitch) start(name string, args ...string) *Proc {
	s.h.t.Helper()
	return s.h.Start("env", s.with(name, args)...)
}

// with keeps all files of a program of Open vSwitch in the folder.
func (s *OpenVSwitch) with(name string, args []string) []string {
	d := s.dir
	return append([]string{"OVS_RUNDIR=" + d, "OVS_LOGDIR=" + d, "OVS_DBDIR=" + d, "OVS_SYSCONFDIR=" + d, name}, args...)
}
