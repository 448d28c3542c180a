package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/evpn"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/offload"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// program is the variable of the environment that makes this program a node.
const program = "VXSWITCH_EVPN_BENCH"

// ours is a node in a program of its own, which answers questions over a Unix socket.
type ours struct {
	t    *testing.T
	proc *netns.Proc
	conn net.Conn
	in   *bufio.Reader
}

func startOurs(t *testing.T, h *netns.Host) contender { return startNode(t, h, "env") }

// datapath is the variable of the environment with the datapath of the node.
const datapath = "VXSWITCH_EVPN_DATAPATH"

// startNode starts a node by a command such as env.
func startNode(t *testing.T, h *netns.Host, by ...string) *ours {
	socket := filepath.Join(t.TempDir(), "sock")
	o := &ours{t: t, proc: startSelf(t, h, by, program, socket)}
	o.conn, o.in = connect(t, socket)
	return o
}

func (o *ours) ask(format string, args ...any) (at time.Time) {
	o.t.Helper()
	o.conn.SetDeadline(time.Now().Add(soon))
	var nano int64
	_, err := fmt.Fprintf(o.conn, format+"\n", args...)
	if err == nil {
		_, err = fmt.Fscanln(o.in, &nano)
	}
	check.OK(o.t, err)
	return time.Unix(0, nano)
}

func (o *ours) hosts(at netip.Addr, n int) time.Time        { return o.ask("hosts %v %d", at, n) }
func (o *ours) prefixes(n int) time.Time                    { return o.ask("prefixes %v %d", leafAddr, n) }
func (o *ours) carried(n int)                               { o.ask("carried %v %d", leafAddr, n) }
func (o *ours) host(mac frame.MAC, at netip.Addr) time.Time { return o.ask("%v %v 1", mac, at) }
func (o *ours) pids() []int                                 { return []int{o.proc.PID()} }
func (o *ours) stop()                                       { o.conn.Close(); o.proc.Kill() }

// serve is the node. It listens on a socket and prints "ready".
func serve(socket string) error {
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))) // as in vxswitchd
	n, err := node.New(&node.Options{Owners: []string{evpn.DefaultOwner}, Offload: func(sw *vswitch.Switch) (io.Closer, error) { return offload.New(sw, nil) }})
	if err != nil {
		return err
	}
	defer n.Close()
	if _, err := n.Tunnel("vx", node.Tunnel{Local: leafAddr, Config: vtep.Config{Peers: vtep.ListedPerVNI}}); err != nil {
		return err
	}
	tunnels := []node.SegmentTunnel{{Tunnel: "vx", AttachConfig: vswitch.AttachConfig{NoLearn: true}}}
	err = n.Update(func(c *node.Config) error {
		if by := os.Getenv(datapath); by != "" {
			if err := c.Datapath.UnmarshalText([]byte(by)); err != nil {
				return err
			}
		}
		c.Ports = []node.Port{{Name: portA}, {Name: portB}} // of the probe
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := n.Segment(vni, &node.Segment{Tunnels: tunnels, Members: []node.Member{{Port: portA}, {Port: portB}}, Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}}}); err != nil {
		return err
	}
	v, err := n.Segment(l3vni, &node.Segment{Tunnels: tunnels})
	if err == nil {
		err = v.Gateway("red", l3.InterfaceConfig{MAC: frame.MAC{2, 0, 0, 0, 5, 1}})
	}
	if err != nil {
		return err
	}
	sp, err := evpn.New(n, &evpn.Config{AS: as, RouterID: leafAddr, MaxHosts: 1 << 20, MaxRoutes: 1 << 20,
		Mobility: evpn.Mobility{Moves: 16, Window: time.Millisecond},
		Peers:    []evpn.Peer{{Addr: feederAddr, AS: as, Retry: 100 * time.Millisecond}, {Addr: moverAddr, AS: as, Retry: 100 * time.Millisecond}}})
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.Run(ctx)
	go sp.Run(ctx)
	fmt.Println("ready")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	in := bufio.NewReader(c)
	prefixes := 0
	for {
		var what string
		var vtep netip.Addr
		var want int
		var at string
		if _, err := fmt.Fscanln(in, &what, &at, &want); err != nil {
			return nil
		}
		if vtep, err = netip.ParseAddr(at); err != nil {
			return err
		}
		switch what {
		case "carried":
			err = waitCarried(n, uint64(want))
		case "prefixes":
			waitPrefixes(n, want, &prefixes)
		default:
			pause := 10 * time.Millisecond
			if what != "hosts" {
				pause = 100 * time.Microsecond
			}
			for !is(n, what, vtep, want) {
				time.Sleep(pause)
			}
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(c, time.Now().UnixNano())
	}
}

// waitCarried waits until the kernel has carried so many frames.
func waitCarried(n *node.Node, want uint64) error {
	for {
		switch st, err := n.Offload().(*offload.Offload).Stats(); {
		case err != nil:
			return err
		case st.Carried.Frames >= want:
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// waitPrefixes waits until a node has so many prefixes, or with 0 none of those that it had. It looks for one after the other: a list of
// all of them would be more work than what is measured.
func waitPrefixes(n *node.Node, want int, had *int) {
	vrf := n.Gateway().VRF("red")
	for i := range max(want, *had) {
		r := prefix(i)
		for {
			if _, ok := vrf.Route(netip.PrefixFrom(r.IP.Netip(), int(r.Bits))); ok == (want > 0) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	*had = want
}

// is reports whether the tables of a node have what is waited for: so many MACs at a VTEP with as many neighbours, or one MAC.
func is(n *node.Node, what string, at netip.Addr, want int) bool {
	var v *vswitch.VSI
	for _, x := range n.Switch().VSIs() {
		if x.VNI() == vni {
			v = x
		}
	}
	there := func(d frame.Dest) bool { return n.Switch().Name(d) == netip.AddrPortFrom(at, 4789).String() }
	if what != "hosts" {
		m, err := frame.ParseMAC(what)
		if err != nil {
			panic(err)
		}
		e, ok := v.FDB().Get(m)
		return ok && there(e.Dest)
	}
	near := func(n int) bool { return n >= want && n <= want+8 } // the ports may be in the tables too
	if !near(v.FDB().Len()) || !near(n.Neighbours(vni).Table().Len()) {
		return false
	}
	known, count := map[frame.Dest]bool{}, 0
	for e := range v.FDB().All() {
		is, ok := known[e.Dest]
		if !ok {
			is = there(e.Dest)
			known[e.Dest] = is
		}
		if is {
			count++
		}
	}
	return count == want
}
