package ovsdb

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/snoop"
)

// Table Mcast_Macs_Remote: of three VTEPs those that rows name get the frames of a group, and all those of groups without rows.
func TestGroups(t *testing.T) { servers(t, testGroups) }

func testGroups(t *testing.T, l *lab) {
	third := l.Host("third")
	l.Link(l.us, "192.0.3.1/24", third, "192.0.3.2/24")
	third.Route("192.0.2.0/24", "via", "192.0.3.1")
	l.bind()
	third.VXLAN("vx", netns.VXLAN{ID: 5000, Local: "192.0.3.2", Flood: []string{"192.0.2.1"}, Addr: "10.0.0.3/24"})
	l.db.Ctl("add-mcast-remote", "ls0", "unknown-dst", "192.0.3.2", "--", "set", "Logical_Switch", "ls0", "replication_mode=source_node",
		"--", "add-mcast-remote", "ls0", "01:00:5e:01:01:01", "192.0.2.2",
		"--", "add-mcast-remote", "ls0", "01:00:5e:01:01:02", "192.0.2.2", "--", "add-mcast-remote", "ls0", "01:00:5e:01:01:02", "192.0.3.2",
		"--", "add-mcast-remote", "ls0", "01:00:5e:01:01:03", "192.0.2.1")
	l.until("rows", func() bool { return len(strings.Split(l.rows(), "\n")) == 6 })
	l.until("a tunnel to each other VTEP", func() bool { return len(strings.Fields(l.db.Ctl("--bare", "--columns=_uuid", "list", "Tunnel"))) == 2 })
	l.guest.Route("224.0.0.0/4", "dev", "p1")
	send := func(want ...string) {
		t.Helper()
		both := []*netns.Capture{l.theirs.Capture("vx", "udp and dst net 239.1.1"), third.Capture("vx", "udp and dst net 239.1.1")}
		l.guest.Do(func() {
			for group := 1; group <= 4; group++ {
				c := check.Must(net.Dial("udp4", fmt.Sprintf("239.1.1.%d:5000", group)))(t)
				check.Must(c.Write([]byte("hello")))(t)
				c.Close()
			}
		})
		for i, c := range both {
			c.Want(len(want[i]), func(netns.Packet) bool { return true })
			var got []byte
			for _, p := range c.Stop() {
				got = append(got, '0'+p.Data[33])
			}
			slices.Sort(got) // flows overtake each other
			check.Equal(t, "groups at "+[]string{"theirs", "third"}[i], string(got), want[i])
		}
	}
	send("124", "24")
	l.db.Ctl("del-mcast-remote", "ls0", "01:00:5e:01:01:01", "192.0.2.2", "--", "set", "Logical_Switch", "ls0", "replication_mode=service_node",
		"--", "del-mcast-remote", "ls0", "01:00:5e:01:01:03", "192.0.2.1")
	l.until("one VTEP for each", func() bool { return strings.Count(l.rows(), "no broadcast") == 2 })
	l.db.Ctl("del-mcast-remote", "ls0", "01:00:5e:01:01:02", "192.0.2.2", "--", "set", "Logical_Switch", "ls0", "replication_mode=source_node")
	l.until("the third alone", func() bool { return !strings.Contains(l.rows(), "no broadcast") })
	send("134", "1234")
}

// Table Mcast_Macs_Local: groups that hosts on our ports listen to, as long as they do.
func TestGroupsListened(t *testing.T) { servers(t, testGroupsListened) }

func testGroupsListened(t *testing.T, l *lab) {
	l.stop()
	l.multicast = &snoop.Config{FastLeave: true}
	l.sw, l.stop = l.begin("us")
	l.until("connected", func() bool { return l.sw.Status().State == Connected })
	l.bind()
	local := func() string { return l.db.Ctl("--bare", "--columns=MAC", "list", "Mcast_Macs_Local") }
	listen := func(h *netns.Host, dev, group string) (c net.PacketConn) {
		h.Do(func() {
			i := check.Must(net.InterfaceByName(dev))(t)
			c = check.Must(net.ListenMulticastUDP("udp", i, &net.UDPAddr{IP: net.ParseIP(group), Port: 5000}))(t)
		})
		t.Cleanup(func() { c.Close() })
		return c
	}
	listen(l.theirs, "vx", "239.1.1.9")
	four, six := listen(l.guest, "p1", "239.129.2.3"), listen(l.guest, "p1", "ff05::1:3")
	l.until("the groups of our host", func() bool {
		all := local()
		return strings.Contains(all, "01:00:5e:01:02:03") && strings.Contains(all, "33:33:00:01:00:03") && strings.Contains(all, "unknown-dst")
	})
	if got := l.db.Ctl("list-local-macs", "ls0"); strings.Count(got, "vxlan_over_ipv4/192.0.2.1") < 3 {
		t.Errorf("local MACs: %s", got)
	}
	l.until("the group behind the tunnel is known", func() bool {
		for x := range l.node.Snooper(5000).All() {
			if x.Group.String() == "239.1.1.9" {
				return true
			}
		}
		return false
	})
	four.Close()
	six.Close()
	l.until("no group", func() bool { return local() == "unknown-dst" })
	l.stop()
	l.alone(func() { check.Equal(t, "Mcast_Macs_Local", local(), "") })
}
