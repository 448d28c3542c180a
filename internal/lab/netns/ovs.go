package netns

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
)

// StartOVS starts Open vSwitch with its user-space datapath in a namespace, with files in a
// folder: start runs a program that stays and returns when it has printed a text; the last one is
// the switch itself. Its bridge phy has the underlay device, and bridge br0 the device of a guest.
func StartOVS(ctx context.Context, ns, dir, under, inside string, start func(text string, args ...string) error) error {
	db := filepath.Join(dir, "conf.db")
	schema := filepath.Join(cmp.Or(os.Getenv("OVS_PKGDATADIR"), "/usr/share/openvswitch"), "vswitch.ovsschema")
	if _, err := Output(ctx, Timeout, "", ovsProgram(dir, "ovsdb-tool", "create", db, schema)...); err != nil {
		return err
	}
	if err := start("ovsdb-server (Open vSwitch)", ovsProgram(dir, "ovsdb-server", "-vconsole:info", "--remote=p"+ovsSocket(dir), db)...); err != nil {
		return err
	}
	if err := SetOVS(ctx, ns, dir, "--no-wait", "init"); err != nil {
		return err
	}
	if err := start("connected", ovsProgram(dir, "ovs-vswitchd", "-vconsole:info", "--pidfile", ovsSocket(dir))...); err != nil {
		return err
	}
	return SetOVS(ctx, ns, dir, "--", "add-br", "phy", "--", "set", "bridge", "phy", "datapath_type=netdev",
		"--", "add-port", "phy", under,
		"--", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
		"--", "add-port", "br0", inside)
}

// SetOVS runs ovs-vsctl, which waits until the switch has done it.
func SetOVS(ctx context.Context, ns, dir string, args ...string) error {
	_, err := Output(ctx, Timeout, ns, ovsProgram(dir, append(ovsControl(dir), args...)...)...)
	return err
}

func ovsSocket(dir string) string { return "unix:" + filepath.Join(dir, "db.sock") }

func ovsControl(dir string) []string {
	return []string{"ovs-vsctl", "--db=" + ovsSocket(dir), "--retry", "--timeout=10"}
}

// ovsProgram keeps all files of a program of Open vSwitch in a folder.
func ovsProgram(dir string, args ...string) []string {
	return append([]string{"env", "OVS_RUNDIR=" + dir, "OVS_LOGDIR=" + dir, "OVS_DBDIR=" + dir, "OVS_SYSCONFDIR=" + dir}, args...)
}
