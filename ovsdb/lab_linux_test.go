package ovsdb

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb/internal/ovslab"
	"github.com/vxswitch/vxswitch/snoop"
	"github.com/vxswitch/vxswitch/vtep"
)

// A lab is a node of ours (192.0.2.1) with ports p1 and p2 and a guest behind p1, and a VTEP of the kernel (192.0.2.2), on one
// wire. Both are told by vtep-ctl what to do, the kernel by hand.
type lab struct {
	*netns.Net
	t          *testing.T
	db         *ovslab.Server
	us, theirs *netns.Host
	guest      *netns.Host   // 10.0.0.1
	multicast  *snoop.Config // of sw
	node       *node.Node
	sw         *Switch
	own        bool   // sw itself is the server, with the file and socket of db
	stop       func() // ends sw
}

// servers runs a test with ovsdb-server, and with the server in the node.
func servers(t *testing.T, f func(t *testing.T, l *lab)) {
	t.Run("ovsdb-server", func(t *testing.T) { f(t, newLab(t, false)) })
	t.Run("own", func(t *testing.T) { f(t, newLab(t, true)) })
}

func newLab(t *testing.T, own bool) *lab {
	t.Helper()
	l := &lab{Net: netns.New(t), t: t, db: ovslab.New(t), own: own}
	if own {
		l.db.Stop()
	}
	l.us, l.theirs = l.Host("us"), l.Host("theirs")
	l.Link(l.us, "192.0.2.1/24", l.theirs, "192.0.2.2/24")
	l.us.Ready()
	l.node = check.Must(node.New(&node.Options{Owners: []string{DefaultOwner}}))(t)
	l.us.Do(func() {
		check.OK(t, l.node.Apply(&node.Config{Ports: []node.Port{{Name: "p1"}, {Name: "p2"}},
			Tunnels: []node.Tunnel{{Config: vtep.Config{Name: "vx", Peers: vtep.ListedPerVNI}, Local: netip.MustParseAddr("192.0.2.1")}}}))
	})
	l.guest = l.Host("guest")
	l.us.IP("link", "set", "p1", "netns", l.guest.NS)
	l.guest.Up("p1")
	l.guest.Addr("p1", "10.0.0.1/24")
	t.Cleanup(func() { l.node.Close() })
	check.Run(t, l.node.Run)
	l.sw, l.stop = l.begin("us")
	l.until("connected", func() bool { return l.sw.Status().State == Connected && strings.Contains(l.db.Ctl("list-ps"), "us") })
	return l
}

// begin runs a Switch.
func (l *lab) begin(name string) (*Switch, func()) {
	l.t.Helper()
	c := &Config{Target: l.db.Target(), Name: name, Ports: []string{"p1", "p2"}, Tunnel: "vx", TunnelIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Multicast: l.multicast}
	if l.own {
		c.Target, c.Listen, c.Database = "", []string{"p" + l.db.Target()}, l.db.File()
	}
	s := check.Must(New(l.node, c))(l.t)
	return s, check.Run(l.t, s.Run)
}

// restart restarts the server.
func (l *lab) restart() {
	l.t.Helper()
	if !l.own {
		l.db.Stop()
		l.db.Start()
		return
	}
	l.stop()
	l.sw, l.stop = l.begin("us")
	l.until("connected again", func() bool { return l.sw.Status().State == Connected })
}

// alone calls f while there is a server and no switch. An ovsdb-server has the file that the node's own server has left.
func (l *lab) alone(f func()) {
	l.t.Helper()
	if !l.own {
		f()
		return
	}
	l.db.Start()
	f()
	l.db.Stop()
}

// until waits for what becomes true.
func (l *lab) until(what string, ok func() bool) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	l.t.Fatalf("not so: %s; status %+v", what, l.sw.Status())
}

// bind makes Logical_Switch ls0 with VNI 5000, binds p1, and floods to the kernel, which has 10.0.0.2 in it.
func (l *lab) bind() {
	l.t.Helper()
	l.db.Ctl("add-ls", "ls0", "--", "set", "Logical_Switch", "ls0", "tunnel_key=5000", "--", "bind-ls", "us", "p1", "0", "ls0",
		"--", "add-mcast-remote", "ls0", "unknown-dst", "192.0.2.2")
	l.theirs.VXLAN("vx", netns.VXLAN{ID: 5000, Local: "192.0.2.2", Flood: []string{"192.0.2.1"}, Addr: "10.0.0.2/24"})
	l.until("a segment", func() bool { return l.sw.Status().Segments == 1 })
}

// port returns the UUID of a Physical_Port.
func (l *lab) port(name string) string {
	l.t.Helper()
	return l.db.Ctl("--bare", "--columns=_uuid", "find", "Physical_Port", "name="+name)
}

func (l *lab) segments() int { return len(l.node.Segments()) }

// rows returns the node's rows of the controller, in one string.
func (l *lab) rows() string {
	var all []string
	for r := range l.node.Plane().Rows(DefaultOwner) {
		all = append(all, fmt.Sprint(r))
	}
	return strings.Join(all, "\n")
}
