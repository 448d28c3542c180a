package ovsdb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// reaches reports whether a ping of the guest is answered.
func (l *lab) reaches(addr string) bool {
	_, err := l.guest.Try(l.t.Context(), "ping", "-n", "-c", "1", "-W", "1", addr)
	return err == nil
}

// faults returns those of the switch and of port p1.
func (l *lab) faults() string {
	return l.db.Ctl("get", "Physical_Switch", "us", "switch_fault_status") + l.db.Ctl("get", "Physical_Port", l.port("p1"), "port_fault_status")
}

// Tables ACL and ACL_entry: what is denied does not pass, what entries before allow does, both while traffic flows. What cannot be carried
// out denies more, and is a fault of the port.
func TestACL(t *testing.T) { servers(t, testACL) }

func testACL(t *testing.T, l *lab) {
	l.bind()
	l.guest.Ping("10.0.0.2", 1)
	l.db.Ctl("--id=@e", "create", "ACL_entry", "sequence=10", "direction=ingress", "action=deny", "protocol=1", "dest_ip=10.0.0.2",
		"--", "--id=@a", "create", "ACL", "acl_name=web", "acl_entries=@e", "--", "set", "Physical_Port", l.port("p1"), "acl_bindings:0=@a")
	l.until("no ping", func() bool { return !l.reaches("10.0.0.2") })
	l.guest.Transfer(l.theirs, "10.0.0.2:5000", 1<<20)
	acl := l.db.Ctl("--bare", "--columns=_uuid", "find", "ACL", "acl_name=web")
	entry := func(columns ...string) {
		t.Helper()
		l.db.Ctl(append(append([]string{"--id=@e", "create", "ACL_entry"}, columns...), "--", "add", "ACL", acl, "acl_entries", "@e")...)
	}
	entry("sequence=5", "direction=ingress", "action=permit", "protocol=1", "icmp_type=8", "source_ip=10.0.0.1")
	l.until("a ping", func() bool { return l.reaches("10.0.0.2") })
	entry("sequence=4", "direction=egress", "action=deny", "protocol=1", "icmp_type=0")
	l.until("no answer", func() bool { return !l.reaches("10.0.0.2") })
	if l.faults() != "[][]" || len(l.sw.Status().LeftOut) > 0 {
		t.Errorf("%s, %v", l.faults(), l.sw.Status().LeftOut)
	}
	entry("sequence=1", "direction=ingress", "action=deny", "protocol=6", "tcp_flags=2", "tcp_flags_mask=2")
	l.until("a fault", func() bool {
		return l.faults() == "[][invalid_ACL_binding]" && l.sw.Status().LeftOut["bad-acl-entry"] == 1
	})
	l.db.Ctl("clear", "Physical_Port", l.port("p1"), "acl_bindings", "--", "destroy", "ACL", acl, "--", "--all", "destroy", "ACL_entry")
	l.until("a ping without the ACL", func() bool { return l.reaches("10.0.0.2") })
	l.until("no fault", func() bool { return l.faults() == "[][]" && len(l.sw.Status().LeftOut) == 0 })
	if n := len(l.node.Config().Policies); n > 0 {
		t.Errorf("%d policies are left", n)
	}
}

// Tables Logical_Router, Arp_Sources_Local and Arp_Sources_Remote: packets of the guest are routed here to a network without a port here,
// and by a static route; an ACL denies them, and all goes with the router.
func TestRouter(t *testing.T) { servers(t, testRouter) }

func testRouter(t *testing.T, l *lab) {
	l.bind()
	l.theirs.VXLAN("vx1", netns.VXLAN{ID: 5001, Local: "192.0.2.2", Flood: []string{"192.0.2.1"}, Addr: "10.0.1.2/24"})
	l.theirs.Addr("lo", "10.9.0.9/32")
	source := l.sw.source().String()
	l.theirs.Neighbour("vx1", "10.0.1.254", source)
	l.theirs.Route("10.0.0.0/24", "via", "10.0.1.254", "dev", "vx1", "metric", "1")
	l.theirs.IP("link", "del", "vx") // which has 10.0.0.0/24 too
	l.guest.Route("default", "via", "10.0.0.254")

	ls := func(name string) string { return l.db.Ctl("get", "Logical_Switch", name, "_uuid") }
	l.db.Ctl("add-ls", "ls1", "--", "set", "Logical_Switch", "ls1", "tunnel_key=5001", "--", "add-ucast-remote", "ls1", l.theirs.MAC("vx1"), "192.0.2.2")
	id := l.db.Ctl("--bare", "--columns=_uuid", "find", "Ucast_Macs_Remote")
	l.db.Ctl("set", "Ucast_Macs_Remote", id, "ipaddr=10.0.1.2")
	l.db.Ctl("create", "Logical_Router", "name=r0", fmt.Sprintf(`switch_binding={"10.0.0.254/24"=%s,"10.0.1.254/24"=%s}`, ls("ls0"), ls("ls1")),
		`static_routes={"10.9.0.0/16"="10.0.1.2"}`)
	l.until("both networks", func() bool { return l.sw.Status().Segments == 2 })
	l.until("our MAC of questions", func() bool { return strings.Contains(l.db.Ctl("list", "Arp_Sources_Local"), source) })
	l.until("the other network", func() bool { return l.reaches("10.0.1.2") })
	if ttl := l.guest.PingTTL("10.0.1.2"); ttl != 63 {
		t.Errorf("TTL %d", ttl)
	}
	l.guest.Ping("10.9.0.9", 1)

	at := l.db.Ctl("--bare", "--columns=_uuid", "find", "Physical_Locator", `dst_ip="192.0.2.2"`)
	l.db.Ctl("create", "Arp_Sources_Remote", `src_mac="02:00:00:00:00:99"`, "locator="+at)
	l.until("the MAC of others' questions", func() bool { return strings.Contains(l.rows(), "02:00:00:00:00:99") })

	l.db.Ctl("--id=@e", "create", "ACL_entry", "sequence=1", "direction=ingress", "action=deny", "protocol=1", "dest_ip=10.9.0.0", "dest_mask=255.255.0.0",
		"--", "--id=@a", "create", "ACL", "acl_name=a", "acl_entries=@e", "--", "set", "Logical_Router", "r0", `acl_binding:10.0.0.254=@a`)
	l.until("no ping by the static route", func() bool { return !l.reaches("10.9.0.9") })
	l.guest.Ping("10.0.1.2", 1)
	if l.faults() != "[][]" || len(l.sw.Status().LeftOut) > 0 {
		t.Errorf("%s, %v", l.faults(), l.sw.Status().LeftOut)
	}

	l.db.Ctl("set", "Logical_Router", "r0", `static_routes={"10.9.0.0/16"="10.0.7.2","10.0.1.0/24"="10.0.1.2","127.0.0.0/8"="10.0.1.2"}`)
	l.until("a fault", func() bool { return l.faults() == "[lr_support_fault][]" && l.sw.Status().LeftOut["bad-route"] == 3 })
	if st := l.sw.Status(); st.Segments != 2 || !l.reaches("10.0.1.2") {
		t.Errorf("%d segments, refused %v", st.Segments, st.Refused)
	}
	l.db.Ctl("destroy", "Logical_Router", "r0")
	l.until("one network", func() bool { return l.sw.Status().Segments == 1 && l.faults() == "[][]" })
	l.until("no MACs of questions", func() bool {
		return l.db.Ctl("list", "Arp_Sources_Local") == "" && !strings.Contains(l.rows(), "02:00:00:00:00:99")
	})
	if c := l.node.Config(); len(c.VRFs)+len(c.Policies) > 0 {
		t.Errorf("left: %+v, %+v", c.VRFs, c.Policies)
	}
}
