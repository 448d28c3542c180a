package netns

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// An OVS describes an Open vSwitch with its user-space datapath.
type OVS struct {
	ID     int    // VNI
	Local  string // underlay address, CIDR
	Remote string // the one peer
	Under  string // underlay device
	Inside string // device of the guest
	MTU    int    // of the underlay
}

// OVS runs Open vSwitch inside the host, with files in a folder of the test. Its bridge
// phy has the underlay device and the underlay address, since the datapath sends tunnel
// packets by the addresses of its own bridges; bridge br0 has the guest and the tunnel vx0.
//
// It drops packets with unfinished checksums: see [Host.TxOff].
func (h *Host) OVS(o OVS) {
	h.t.Helper()
	tool(h.t, "ovs-vsctl")
	dir := h.t.TempDir()
	with := func(args ...string) []string {
		return append([]string{"OVS_RUNDIR=" + dir, "OVS_LOGDIR=" + dir, "OVS_DBDIR=" + dir, "OVS_SYSCONFDIR=" + dir}, args...)
	}
	db, sock := filepath.Join(dir, "conf.db"), "unix:"+filepath.Join(dir, "db.sock")
	h.Run("env", with("ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")...)
	h.Start("env", with("ovsdb-server", "-vconsole:info", "--remote=p"+sock, db)...).Want("ovsdb-server (Open vSwitch)")
	vsctl := func(args ...string) {
		h.t.Helper()
		h.Run("env", with(append([]string{"ovs-vsctl", "--db=" + sock, "--retry", "--timeout=10"}, args...)...)...)
	}
	vsctl("--no-wait", "init")
	h.Start("env", with("ovs-vswitchd", "-vconsole:info", sock)...).Want("connected")
	vsctl("--", "add-br", "phy", "--", "set", "bridge", "phy", "datapath_type=netdev",
		"--", "add-port", "phy", o.Under,
		"--", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
		"--", "add-port", "br0", o.Inside,
		"--", "add-port", "br0", "vx0", "--", "set", "interface", "vx0", "type=vxlan",
		"options:remote_ip="+o.Remote, fmt.Sprintf("options:key=%d", o.ID), "options:dst_port="+strconv.Itoa(4789))
	h.MTU("phy", o.MTU)
	h.Up("phy")
	h.Addr("phy", o.Local)
	h.Up("br0")
}
