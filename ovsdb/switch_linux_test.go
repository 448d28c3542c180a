package ovsdb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/vtep"
)

// Tables Physical_Switch, Physical_Port, Logical_Switch, Mcast_Macs_Remote, Physical_Locator(_Set), Ucast_Macs_Local and
// Mcast_Macs_Local with a VTEP of the kernel: a controller binds a port, hosts reach each other both ways, ours is in the
// database with its address, and all goes when the binding goes.
func TestController(t *testing.T) { servers(t, testController) }

func testController(t *testing.T, l *lab) {
	if got := l.db.Ctl("get", "Physical_Switch", "us", "tunnel_ips"); !strings.Contains(got, "192.0.2.1") {
		t.Errorf("tunnel_ips %s", got)
	}
	if got := strings.Fields(l.db.Ctl("list-ports", "us")); strings.Join(got, " ") != "p1 p2" {
		t.Errorf("ports %v", got)
	}
	l.bind()
	l.guest.Ping("10.0.0.2", 3)
	l.theirs.Ping("10.0.0.1", 3)
	mac := l.guest.MAC("p1")
	l.until("our host in Ucast_Macs_Local, with its address", func() bool {
		return strings.Contains(l.db.Ctl("find", "Ucast_Macs_Local", `MAC="`+mac+`"`, `ipaddr="10.0.0.1"`), mac)
	})
	if got := l.db.Ctl("list-local-macs", "ls0"); !strings.Contains(got, "vxlan_over_ipv4/192.0.2.1") || !strings.Contains(got, "unknown-dst") {
		t.Errorf("local MACs: %s", got)
	}
	l.db.Ctl("unbind-ls", "us", "p1", "0")
	l.until("no segment", func() bool { return l.segments() == 0 && l.rows() == "" })
	l.until("no host", func() bool { return l.db.Ctl("list", "Ucast_Macs_Local")+l.db.Ctl("list", "Mcast_Macs_Local") == "" })
}

// Table Logical_Binding_Stats: packets and bytes of a binding, which grow, and go with it. What the Physical_Switch has sent is "from
// local", what it has received "to local".
func TestBindingStats(t *testing.T) {
	was := statsPause
	statsPause = 50 * time.Millisecond
	t.Cleanup(func() { statsPause = was })
	servers(t, testBindingStats)
}

func testBindingStats(t *testing.T, l *lab) {
	l.bind()
	l.guest.Ping("10.0.0.2", 3)
	stat := func(column string) (n int) {
		id := strings.Trim(l.db.Ctl("get", "Physical_Port", l.port("p1"), "vlan_stats:0"), `"`)
		fmt.Sscan(l.db.Ctl("get", "Logical_Binding_Stats", id, column), &n)
		return n
	}
	l.until("a row", func() bool {
		return strings.Contains(l.db.Ctl("get", "Physical_Port", l.port("p1"), "vlan_stats"), "0=")
	})
	l.until("three pings each way", func() bool {
		return stat("packets_to_local") >= 3 && stat("packets_from_local") >= 3 && stat("bytes_to_local") >= 3*98 && stat("bytes_from_local") >= 3*98
	})
	before := stat("packets_to_local")
	l.guest.Ping("10.0.0.2", 2)
	l.until("two more", func() bool { return stat("packets_to_local") >= before+2 })
	l.restart() // which forgets statistics
	l.until("a row again", func() bool {
		return strings.Contains(l.db.Ctl("get", "Physical_Port", l.port("p1"), "vlan_stats"), "0=")
	})
	l.db.Ctl("unbind-ls", "us", "p1", "0")
	l.until("no row", func() bool { return l.db.Ctl("list", "Logical_Binding_Stats") == "" })
}

// Table Tunnel: one to each VTEP. bfd_status is there while bfd_params enables BFD: it says that the tunnel has none, or the state of the
// session with another node.
func TestTunnel(t *testing.T) { servers(t, testTunnel) }

func testTunnel(t *testing.T, l *lab) {
	l.bind()
	tunnel := func(columns string) string {
		t.Helper()
		return l.db.Ctl("--bare", "--columns="+columns, "list", "Tunnel")
	}
	l.until("a tunnel", func() bool { return tunnel("_uuid") != "" })
	for column, ip := range map[string]string{"local": "192.0.2.1", "remote": "192.0.2.2"} {
		if got := l.db.Ctl("get", "Physical_Locator", tunnel(column), "dst_ip"); !strings.Contains(got, ip) {
			t.Errorf("%s is %s", column, got)
		}
	}
	l.db.Ctl("set", "Tunnel", tunnel("_uuid"), "bfd_params:enable=true")
	l.until("no BFD", func() bool { return strings.Contains(tunnel("bfd_status"), "enabled=false") })

	l.theirs.IP("link", "del", "vx")
	other := check.Must(node.New(nil))(t)
	t.Cleanup(func() { other.Close() })
	with := func(local, remote string) *node.Config {
		c := &node.Config{Tunnels: []node.Tunnel{{Config: vtep.Config{Name: "vx", Peers: vtep.ListedPerVNI}, Local: netip.MustParseAddr(local), BFD: new(node.BFD)}}}
		if remote != "" {
			c.Segments = []node.Segment{{VNI: 5000, Tunnel: "vx", Flood: []netip.Addr{netip.MustParseAddr(remote)}}}
		}
		return c
	}
	l.theirs.Do(func() { check.OK(t, other.Apply(with("192.0.2.2", "192.0.2.1"))) })
	stop := check.Run(t, other.Run)
	end := func() {
		stop()
		other.Close()
	}
	cfg := l.node.Config()
	cfg.Tunnels[0].BFD = new(node.BFD)
	l.us.Do(func() { check.OK(t, l.node.Apply(cfg)) })
	status := func(what string, words ...string) {
		t.Helper()
		l.until(what, func() bool {
			now := tunnel("bfd_status")
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(now, w) })
		})
	}
	status("a session that is up", "enabled=true", "forwarding=true", "state=up", "remote_state=up")
	if got := tunnel("bfd_config_local"); !strings.Contains(got, "00:00:5e:00:52:02") {
		t.Error(got)
	}
	end()
	status("a dead VTEP", "enabled=true", "forwarding=false", "state=down")
	l.db.Ctl("set", "Tunnel", tunnel("_uuid"), "bfd_params:enable=false")
	l.until("no status", func() bool { return tunnel("bfd_status") == "" })
	l.db.Ctl("unbind-ls", "us", "p1", "0")
	l.until("no tunnel", func() bool { return tunnel("_uuid") == "" })
}

// Table Ucast_Macs_Remote: without flooding, the host of the kernel is reached, ARP is answered here, and after the row went it is not reached.
func TestUcastRemote(t *testing.T) { servers(t, testUcastRemote) }

func testUcastRemote(t *testing.T, l *lab) {
	l.bind()
	l.db.Ctl("clear-remote-macs", "ls0")
	// vtep-ctl refers to a locator that it has seen, without a wait for it to be there.
	l.until("no locator of the tunnel", func() bool { return !strings.Contains(l.db.Ctl("list", "Physical_Locator"), "192.0.2.2") })
	mac := l.theirs.MAC("vx")
	l.db.Ctl("add-ucast-remote", "ls0", mac, "192.0.2.2")
	id := l.db.Ctl("--bare", "--columns=_uuid", "find", "Ucast_Macs_Remote")
	l.db.Ctl("set", "Ucast_Macs_Remote", id, "ipaddr=10.0.0.2")
	l.until("a MAC with its address", func() bool { return strings.Contains(l.rows(), "10.0.0.2") })
	l.guest.Ping("10.0.0.2", 3)
	l.db.Ctl("del-ucast-remote", "ls0", mac)
	l.until("no rows", func() bool { return l.rows() == "" })
}

// What the database said last holds while it is away, and our hosts are there again when it comes back with nothing of them.
func TestDatabaseAway(t *testing.T) {
	l := newLab(t, false)
	l.bind()
	l.guest.Ping("10.0.0.2", 1)
	l.db.Stop()
	l.until("stale", func() bool { st := l.sw.Status(); return st.State == Connecting && st.Stale && st.Err != nil })
	l.guest.Ping("10.0.0.2", 2)
	l.db.Start()
	l.until("connected", func() bool { st := l.sw.Status(); return st.State == Connected && !st.Stale })
	l.guest.Ping("10.0.0.2", 1)
	l.db.Ctl("unbind-ls", "us", "p1", "0")
	l.until("no segment", func() bool { return l.segments() == 0 })
}

// The end takes away our hosts, rows and segments, and leaves the bindings, which hold again for the next one.
func TestStop(t *testing.T) { servers(t, testStop) }

func testStop(t *testing.T, l *lab) {
	l.bind()
	l.until("Mcast_Macs_Local", func() bool { return l.db.Ctl("list", "Mcast_Macs_Local") != "" })
	l.stop()
	if n := l.segments(); n != 0 || l.rows() != "" {
		t.Errorf("%d segments, rows %s", n, l.rows())
	}
	l.alone(func() {
		if got := l.db.Ctl("list", "Mcast_Macs_Local") + l.db.Ctl("list", "Ucast_Macs_Local") + l.db.Ctl("list", "Tunnel"); got != "" {
			t.Errorf("the database has %s", got)
		}
	})
	l.sw, l.stop = l.begin("us")
	l.until("the segment again", func() bool { return l.segments() == 1 })
}

// Of two switches with one name, the second waits until the first has gone.
func TestOneName(t *testing.T) {
	l := newLab(t, false)
	l.until("connected", func() bool { return l.sw.Status().State == Connected })
	since := l.sw.Status().Since
	another, end := l.begin("us")
	l.until("another waits", func() bool { return another.Status().State == Waiting })
	end() // ovsdb-server says anew to whom the lock belongs
	second, _ := l.begin("us")
	l.until("the second waits", func() bool { return second.Status().State == Waiting })
	check.Equal(t, "the first is connected since", l.sw.Status().Since, since)
	check.ErrorHas(t, second.Status().Err, `another client of the database has the name "us"`)
	l.stop()
	l.until("the second has the name", func() bool { st := second.Status(); return st.State == Connected && st.Err == nil })
}

// A Logical_Switch whose VNI the node has itself is refused, and said so in Physical_Port; others are not affected, and that one comes when it can.
func TestRefused(t *testing.T) { servers(t, testRefused) }

func testRefused(t *testing.T, l *lab) {
	check.Must(l.node.Segment(77, nil))(t)
	cfg := l.node.Config()
	cfg.Segments[0].MaxMACs = 99
	check.OK(t, l.node.Apply(cfg))
	l.bind()
	l.db.Ctl("add-ls", "ls1", "--", "set", "Logical_Switch", "ls1", "tunnel_key=77", "--", "bind-ls", "us", "p2", "5", "ls1")
	l.until("refused", func() bool {
		st := l.sw.Status()
		return st.Segments == 1 && st.Refused["ls1"] != nil && l.segments() == 2
	})
	l.until("a fault", func() bool {
		return strings.Contains(l.db.Ctl("find", "Physical_Port", "name=p2"), "invalid_vlan_map")
	})
	l.guest.Ping("10.0.0.2", 1)
	cfg = l.node.Config()
	cfg.Segments = nil
	check.OK(t, l.node.Apply(cfg))
	l.until("the segment", func() bool { st := l.sw.Status(); return st.Segments == 2 && len(st.Refused) == 0 })
	l.until("no fault", func() bool {
		return !strings.Contains(l.db.Ctl("find", "Physical_Port", "name=p2"), "invalid_vlan_map")
	})
}

// Configure adds and removes ports under traffic. A port that the node does not have yet is bound when it comes; the others work.
func TestConfigure(t *testing.T) { servers(t, testConfigure) }

func testConfigure(t *testing.T, l *lab) {
	l.bind()
	l.guest.Ping("10.0.0.2", 1)
	next := l.sw.cfg
	next.Ports = []string{"p1", "p2", "p3"}
	check.OK(t, l.sw.Configure(&next))
	l.until("p3 in the database", func() bool { return strings.Contains(l.db.Ctl("list-ports", "us"), "p3") })
	l.db.Ctl("bind-ls", "us", "p3", "0", "ls0")
	l.until("a fault of p3", func() bool {
		return strings.Contains(l.db.Ctl("find", "Physical_Port", "name=p3"), "invalid_vlan_map")
	})
	l.guest.Ping("10.0.0.2", 1)
	cfg := l.node.Config()
	cfg.Ports = append(cfg.Ports, node.Port{Name: "p3"})
	l.us.Do(func() { check.OK(t, l.node.Apply(cfg)) })
	l.until("no fault of p3", func() bool {
		return !strings.Contains(l.db.Ctl("find", "Physical_Port", "name=p3"), "invalid_vlan_map")
	})
	next.Ports = []string{"p1"}
	check.OK(t, l.sw.Configure(&next))
	l.until("p1 alone is bound", func() bool { return l.sw.Status().LeftOut["unknown-port"] == 2 })
	l.guest.Ping("10.0.0.2", 1)
	if st := l.sw.Status(); st.State != Connected || st.Segments != 1 {
		t.Errorf("%+v", st)
	}
	next.Name = "other"
	if err := l.sw.Configure(&next); err == nil || err.Error() != "ovsdb: Config.Name: cannot change while the Switch runs" {
		t.Error(err)
	}
}

// Without tunnelIPs, the addresses are those of the tunnel, also after it has moved.
func TestTunnelMoves(t *testing.T) { servers(t, testTunnelMoves) }

func testTunnelMoves(t *testing.T, l *lab) {
	next := l.sw.cfg
	next.TunnelIPs = nil
	check.OK(t, l.sw.Configure(&next))
	l.us.Addr("eth0", "192.0.2.7/24")
	cfg := l.node.Config()
	cfg.Tunnels[0].Local = netip.MustParseAddr("192.0.2.7")
	l.us.Do(func() { check.OK(t, l.node.Apply(cfg)) })
	l.until("the new address", func() bool {
		return strings.Contains(l.db.Ctl("get", "Physical_Switch", "us", "tunnel_ips"), "192.0.2.7")
	})
}
