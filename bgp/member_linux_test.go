package bgp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestMain is a node of ours if the environment says so: gobgp has its sockets in the namespace of the process, so tests start it in one.
func TestMain(m *testing.M) {
	if text := os.Getenv("BGP_TEST_MEMBER"); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A shape is what the node of a member has.
type shape struct {
	ID     int            // of the node; 0 = 1
	Pod    string         // namespace of its pod, 10.65.1.5 of node 1
	Nets   []netip.Prefix // its addresses on eth0, eth1 and so on, in segments 200, 201 and so on
	Tunnel encap.Type     // by eth0: IP in IP is segment 100, VXLAN 4096
	Router netip.Addr     // of the tunnel, if there is one

	Local   netip.Addr   // in place of Nets: the tunnel is over sockets of the host, with this address
	Routers []netip.Addr // in place of Router: of tunnels by eth0, eth1 and so on, in segments 100 or 4096 and so on
}

func (s *shape) id() byte { return byte(cmp.Or(s.ID, 1)) }

// tunnels adds the tunnels of the node, each in a segment of its own.
func (s *shape) tunnels(c *node.Config) {
	by := func(i int, name string, router netip.Addr) {
		t := node.Tunnel{Config: vtep.Config{Name: name, Type: s.Tunnel}, Local: s.Local}
		if !s.Local.IsValid() {
			t.Local, t.Underlay, t.Gateway, t.Device = s.Nets[i].Addr(), node.UnderlayPacket, router, fmt.Sprint("eth", i)
		}
		c.Tunnels = append(c.Tunnels, t)
		x := node.Segment{VNI: frame.VNI(100 + i), Tunnels: []node.SegmentTunnel{{Tunnel: name}}, Gateway: gatewayIn(frame.MAC{})}
		if s.Tunnel != encap.TypeIPIP {
			x.VNI, x.Tunnels[0].VNI, x.Gateway.MAC = frame.VNI(4096+i), 4096, frame.MAC{0x66, 0, 0, 0, 0, s.id()}
		}
		c.Segments = append(c.Segments, x)
	}
	if len(s.Routers) == 0 {
		by(0, "t", s.Router)
	}
	for i, r := range s.Routers {
		by(i, fmt.Sprint("t", i), r)
	}
}

// rack is the shape of a node on one network with 10.0.0.1, by which it tunnels IP in IP, too.
var rack = shape{Nets: prefixes("10.0.0.1/24"), Tunnel: encap.TypeIPIP}

// config is the node.
func (s *shape) config() *node.Config {
	c := &node.Config{
		Ports:    []node.Port{{Name: "pod", DeviceConfig: port.DeviceConfig{Namespace: s.Pod}}},
		Segments: []node.Segment{{VNI: 1, Members: []node.Member{{Port: "pod"}}, Gateway: gatewayIn(frame.MAC{2, 0, 0, 0, 0xee, s.id()}, prefix(fmt.Sprintf("10.65.%d.1/26", s.id())))}},
		VRFs:     []node.VRF{{Name: "v"}},
	}
	s.tunnels(c)
	for i, net := range s.Nets {
		name := fmt.Sprint("eth", i)
		c.Ports = append(c.Ports, node.Port{Name: name, Type: node.PortPacket})
		c.Segments = append(c.Segments, node.Segment{VNI: frame.VNI(200 + i), Members: []node.Member{{Port: name}}, Gateway: gatewayIn(frame.MAC{2, 0, 0, s.id() - 1, 0xca, byte(1 + i)}, net)})
	}
	return c
}

// An answer is what a member says after the Config it gets.
type answer struct {
	Err    string
	Peers  []PeerStatus
	Routes []string
	Lost   []string // rows that the VRF had once, in order
}

// serve runs a node with a Speaker for the first Config from the standard input, until it ends. Others change the settings. One that is
// null asks for an answer.
func serve(text string) error {
	var s shape
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	n, err := node.New(&node.Options{Owners: []string{DefaultOwner}})
	if err != nil {
		return err
	}
	defer n.Close()
	if err := n.Apply(s.config()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.Run(ctx)
	x := new(served)
	defer n.Plane().WatchRoutes(x.note)()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var c *Config
		if in.Decode(&c) != nil {
			return nil
		}
		switch {
		case c == nil:
		case x.Speaker != nil:
			err = x.Configure(c)
		default:
			if x.Speaker, err = New(n, c); err != nil {
				return err
			}
			wg.Go(func() {
				if err := x.Run(ctx); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			})
		}
		if err := out.Encode(x.answer(err)); err != nil {
			return err
		}
		err = nil
	}
}

// served is a Speaker and what its node lost.
type served struct {
	*Speaker

	mu   sync.Mutex
	lost []string
}

func (x *served) note(owner string, _, del []control.Row) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range del {
		if owner == DefaultOwner {
			x.lost = append(x.lost, r.String())
		}
	}
}

func (x *served) answer(err error) (a answer) {
	if err != nil {
		a.Err = err.Error()
	}
	for _, p := range x.Status().Peers {
		p.Refused = nil // its keys are written, and not read
		a.Peers = append(a.Peers, p)
	}
	for _, r := range x.Routes() {
		a.Routes = append(a.Routes, r.String())
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	a.Lost = x.lost
	return a
}

// A member is such a node in a process of its own. The kernel of its host has addresses beside it for the sessions, such as 10.0.0.101.
type member struct {
	t   *testing.T
	h   *netns.Host
	pod *netns.Host
	in  *json.Encoder
	out *json.Decoder
}

// newMember starts a member in a host with eth0 and so on.
func newMember(t *testing.T, n *netns.Net, h *netns.Host, s shape, c *Config) *member {
	t.Helper()
	m := &member{t: t, h: h, pod: n.Host(fmt.Sprint("pod", s.id()))}
	s.Pod = m.pod.NS
	exe := check.Must(os.Executable())(t)
	logs := t.TempDir()
	race := "GORACE=" + os.Getenv("GORACE") + " log_path=" + filepath.Join(logs, "race")
	cmd := netns.Command(context.Background(), h.NS, "env", "BGP_TEST_MEMBER="+string(check.Must(json.Marshal(s))(t)), race, exe)
	t.Cleanup(func() { noRaces(t, logs) })
	m.in, m.out = json.NewEncoder(check.Must(cmd.StdinPipe())(t)), json.NewDecoder(check.Must(cmd.StdoutPipe())(t))
	m.run(cmd)
	m.set(c)
	m.pod.Addr("pod", fmt.Sprintf("10.65.%d.5/26", s.id()))
	m.pod.Route("default", "via", fmt.Sprintf("10.65.%d.1", s.id()))
	m.pod.Ready()
	return m
}

func (m *member) run(cmd *exec.Cmd) {
	m.t.Helper()
	cmd.Stderr = os.Stderr
	check.OK(m.t, cmd.Start())
	m.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// noRaces fails a test for what the race detector has said of a member.
func noRaces(t *testing.T, logs string) {
	for _, name := range check.Must(filepath.Glob(filepath.Join(logs, "race.*")))(t) {
		t.Error(string(check.Must(os.ReadFile(name))(t)))
	}
}

// set changes the settings.
func (m *member) set(c *Config) (a answer) {
	m.t.Helper()
	check.OK(m.t, m.in.Encode(c))
	check.OK(m.t, m.out.Decode(&a))
	if a.Err != "" {
		m.t.Fatal(a.Err)
	}
	return a
}

// ask changes nothing.
func (m *member) ask() answer {
	m.t.Helper()
	return m.set(nil)
}

// want waits until the routes that are taken are these.
func (m *member) want(what string, want ...string) {
	m.t.Helper()
	last := ""
	defer func() {
		if m.t.Failed() {
			m.t.Logf("routes: %s", last)
		}
	}()
	m.h.Until(what, func() bool {
		last = fmt.Sprint(m.ask().Routes)
		return last == fmt.Sprint(want)
	})
}

// taken returns how many routes are taken.
func (m *member) taken() (n int) {
	m.t.Helper()
	for _, r := range m.ask().Routes {
		if !strings.Contains(r, " refused: ") {
			n++
		}
	}
	return n
}

// peer returns what is known of a peer.
func (m *member) peer(addr string) (st PeerStatus) {
	m.t.Helper()
	for _, p := range m.ask().Peers {
		if p.Addr == netip.MustParseAddr(addr) {
			st = p
		}
	}
	return st
}

// lost returns the rows that the VRF lost while f ran.
func (m *member) lost(f func()) []string {
	m.t.Helper()
	before := len(m.ask().Lost)
	f()
	return m.ask().Lost[before:]
}
