package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// ovs is an end of Open vSwitch with its user-space datapath. Its bridge "phy" has the
// underlay device and its address, since the datapath sends tunnel packets by the
// addresses of its own bridges; bridge "br0" has the guest, without some of its offloads, and
// the tunnel.
func ovs(without ...string) end {
	return func(ctx context.Context, l *lab, i int) error {
		if err := offloads(ctx, l.guests[i], "eth0", without...); err != nil {
			return err
		}
		return l.openVSwitch(ctx, i)
	}
}

func (l *lab) openVSwitch(ctx context.Context, i int) error {
	dir, err := os.MkdirTemp(l.dir, "ovs")
	if err != nil {
		return err
	}
	env := []string{"env", "OVS_RUNDIR=" + dir, "OVS_LOGDIR=" + dir, "OVS_DBDIR=" + dir, "OVS_SYSCONFDIR=" + dir}
	with := func(args ...string) []string { return append(env[:len(env):len(env)], args...) }
	share := cmp.Or(os.Getenv("OVS_PKGDATADIR"), "/usr/share/openvswitch")
	db, sock := filepath.Join(dir, "conf.db"), "unix:"+filepath.Join(dir, "db.sock")
	if _, err := netns.Output(ctx, netns.Timeout, "", with("ovsdb-tool", "create", db, filepath.Join(share, "vswitch.ovsschema"))...); err != nil {
		return err
	}
	ns := l.hosts[i]
	if _, err := l.start(ctx, "ovsdb-server", ns, with("ovsdb-server", "-vconsole:info", "--remote=p"+sock, db)...); err != nil {
		return err
	}
	vsctl := func(args ...string) error {
		_, err := netns.Output(ctx, netns.Timeout, ns, with(append([]string{"ovs-vsctl", "--db=" + sock, "--retry", "--timeout=10"}, args...)...)...)
		return err
	}
	if err := vsctl("--no-wait", "init"); err != nil {
		return err
	}
	if err := l.tunnel(ctx, "connected", ns, with("ovs-vswitchd", "-vconsole:info", sock)...); err != nil {
		return err
	}
	if err := vsctl(
		"--", "add-br", "phy", "--", "set", "bridge", "phy", "datapath_type=netdev",
		"--", "add-port", "phy", "under",
		"--", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
		"--", "add-port", "br0", "guest",
		"--", "add-port", "br0", "vx0", "--", "set", "interface", "vx0", "type=vxlan",
		"options:remote_ip="+l.addr(1-i), "options:key="+vni, "options:dst_port=4789"); err != nil {
		return err
	}
	return netns.IP(ctx, ns,
		"addr flush dev under",
		fmt.Sprintf("link set phy mtu %d up", l.inner+overhead),
		"addr add "+l.addr(i)+"/24 dev phy",
		"link set br0 up")
}
