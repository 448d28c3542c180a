package bgp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestMain is a node of ours if the environment says so: gobgp has its sockets in the namespace of the process, so tests start it in one.
func TestMain(m *testing.M) {
	if pod := os.Getenv("BGP_TEST_POD"); pod != "" {
		if err := serve(pod); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// An answer is what a member says after each Config it gets.
type answer struct {
	Err    string
	Peers  []PeerStatus
	Routes []string
}

// serve runs a node with a Speaker, whose settings come from the standard input until it ends. One that is null asks for an answer.
func serve(pod string) error {
	n, err := node.New(&node.Options{Owners: []string{DefaultOwner}})
	if err != nil {
		return err
	}
	defer n.Close()
	if err := n.Apply(memberConfig(pod)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.Run(ctx)
	var s *Speaker
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var c *Config
		if in.Decode(&c) != nil {
			return nil
		}
		var err error
		switch {
		case c == nil:
		case s == nil:
			if s, err = New(n, c); err != nil {
				return err
			}
			wg.Go(func() {
				if err := s.Run(ctx); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			})
		default:
			err = s.Configure(c)
		}
		a := answer{}
		if err != nil {
			a.Err = err.Error()
		}
		for _, p := range s.Status().Peers {
			p.Refused = nil // its keys are written, and not read
			a.Peers = append(a.Peers, p)
		}
		for _, r := range s.Routes() {
			a.Routes = append(a.Routes, r.String())
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// memberConfig is a node with 10.0.0.1 on eth0 of the host, by which it tunnels IP in IP, too, and 10.65.1.1 for a pod.
func memberConfig(pod string) *node.Config {
	gateway := func(mac frame.MAC, list ...string) *node.SegmentGateway {
		return &node.SegmentGateway{VRF: "v", Gateway: node.Gateway{MAC: mac, Addresses: prefixes(list...)}}
	}
	return &node.Config{
		Tunnels: []node.Tunnel{{
			Config: vtep.Config{Name: "t", Type: encap.TypeIPIP}, Local: addr("10.0.0.1"), Underlay: node.UnderlayPacket, UDPConfig: underlay.UDPConfig{Device: "eth0"},
		}},
		Ports: []node.Port{{Name: "eth0", Type: node.PortPacket}, {Name: "pod", DeviceConfig: port.DeviceConfig{Namespace: pod}}},
		Segments: []node.Segment{
			{VNI: 1, Members: []node.Member{{Port: "pod"}}, Gateway: gateway(frame.MAC{2, 0, 0, 0, 0xee, 1}, "10.65.1.1/26")},
			{VNI: 100, Tunnel: "t", Gateway: gateway(frame.MAC{})},
			{VNI: 200, Members: []node.Member{{Port: "eth0"}}, Gateway: gateway(frame.MAC{2, 0, 0, 0, 0xca, 1}, "10.0.0.1/24")},
		},
		VRFs: []node.VRF{{Name: "v"}},
	}
}

// A member is such a node in a process of its own. The kernel of its host has 10.0.0.101 for the sessions.
type member struct {
	t   *testing.T
	h   *netns.Host
	pod *netns.Host
	in  *json.Encoder
	out *json.Decoder
}

// newMember starts a member in a host with eth0.
func newMember(t *testing.T, n *netns.Net, h *netns.Host, c *Config) *member {
	t.Helper()
	m := &member{t: t, h: h, pod: n.Host("pod1")}
	exe := check.Must(os.Executable())(t)
	cmd := netns.Command(context.Background(), h.NS, "env", "BGP_TEST_POD="+m.pod.NS, exe)
	m.in, m.out = json.NewEncoder(check.Must(cmd.StdinPipe())(t)), json.NewDecoder(check.Must(cmd.StdoutPipe())(t))
	m.run(cmd)
	m.set(c)
	m.pod.Addr("pod", "10.65.1.5/26")
	m.pod.Route("default", "via", "10.65.1.1")
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

// set changes the settings; nil asks only.
func (m *member) set(c *Config) (a answer) {
	m.t.Helper()
	check.OK(m.t, m.in.Encode(c))
	check.OK(m.t, m.out.Decode(&a))
	if a.Err != "" {
		m.t.Fatal(a.Err)
	}
	return a
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
		last = fmt.Sprint(m.set(nil).Routes)
		return last == fmt.Sprint(want)
	})
}

// state is that of the session with a peer.
func (m *member) state(peer string) (s string) {
	m.t.Helper()
	for _, p := range m.set(nil).Peers {
		if p.Addr == netip.MustParseAddr(peer) {
			s = p.State
		}
	}
	return s
}
