package ovslab

import (
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// An OVN is a controller: ovn-northd with its two databases, ovn-controller-vtep for the database of a [Server], and a chassis,
// which is a host with Open vSwitch and ovn-controller.
type OVN struct {
	s       *Server
	chassis *netns.Host
	ovs     *netns.OpenVSwitch
}

// OVN starts one. The chassis has an underlay address, on its device eth0, and the device of a guest, which is the port of the same name.
// Without the programs, the test is skipped.
func (s *Server) OVN(chassis *netns.Host, addr, guest string) *OVN {
	s.t.Helper()
	for _, f := range []string{"ovn-northd", "ovn-controller", "ovn-controller-vtep", "ovn-nbctl"} {
		if _, err := exec.LookPath(f); err != nil {
			s.t.Skipf("%s is needed: packages ovn-central, ovn-host and ovn-controller-vtep", f)
		}
	}
	o := &OVN{s: s, chassis: chassis}
	o.ovs = chassis.OVS(netns.OVS{Local: addr + "/24", Under: "eth0", Inside: guest, MTU: 1500})
	for _, db := range []string{"nb", "sb"} {
		file := filepath.Join(s.dir, db+".db")
		s.run("ovsdb-tool", "create", file, "/usr/share/ovn/ovn-"+db+".ovsschema")
		o.start("ovsdb-server", "--remote=p"+o.socket(db), "--unixctl="+filepath.Join(o.s.dir, db+".ctl"), file).Want("ovsdb-server (Open vSwitch)")
	}
	o.start("ovn-northd", "--ovnnb-db="+o.socket("nb"), "--ovnsb-db="+o.socket("sb"))
	o.NB("init")
	o.ovs.Set("set", "Open_vSwitch", ".", "external_ids:system-id=chassis", "external_ids:ovn-bridge=br0", "external_ids:ovn-encap-type=vxlan",
		"external_ids:ovn-encap-ip="+addr, "external_ids:ovn-remote="+o.socket("sb"), "--", "set", "Interface", guest, "external_ids:iface-id="+guest)
	o.start("ovn-controller", "unix:"+filepath.Join(o.ovs.Dir(), "db.sock"))
	o.start("ovn-controller-vtep", "--vtep-db="+s.Target(), "--ovnsb-db="+o.socket("sb"))
	return o
}

// start starts a program with its files in the folder of the Server. It finds the bridges' sockets in that of Open vSwitch.
func (o *OVN) start(name string, args ...string) *netns.Proc {
	o.s.t.Helper()
	return o.chassis.Start("env", append([]string{"OVN_RUNDIR=" + o.s.dir, "OVS_RUNDIR=" + o.ovs.Dir(), name, "-vconsole:info"}, args...)...)
}

func (o *OVN) socket(db string) string { return "unix:" + filepath.Join(o.s.dir, db+".sock") }

// NB runs ovn-nbctl, and returns what it prints. Commands are separated by "--".
func (o *OVN) NB(args ...string) string {
	o.s.t.Helper()
	return o.s.run("ovn-nbctl", append([]string{"--timeout=20", "--db=" + o.socket("nb")}, args...)...)
}

// SB runs ovn-sbctl.
func (o *OVN) SB(args ...string) string {
	o.s.t.Helper()
	return o.s.run("ovn-sbctl", append([]string{"--timeout=20", "--db=" + o.socket("sb")}, args...)...)
}

// State is what the databases have, for a test that failed.
func (o *OVN) State() string {
	return strings.Join([]string{o.NB("show"), o.SB("show"), o.SB("list", "Port_Binding"), o.s.Ctl("show"), o.s.Ctl("list-remote-macs", "ls0")}, "\n")
}
