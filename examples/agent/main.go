// Agent is a network agent with a control plane of its own. It connects a TAP to a VXLAN segment, tells the other agents
// which hosts it has, and hears of theirs, so that nothing has to be flooded to find a host:
//
//	agent -local 10.0.0.1 -peers 10.0.0.2,10.0.0.3
//
// It is meant to be copied. The parts of a control plane are in files of their own:
//
//	switch --- events ---> hosts.go --- TCP, JSON ---> the other agents
//	   ^                                                     |
//	   +------- rows ----- peers.go <------------------------+
//
// hosts.go keeps what is here, by the events of the switch. peers.go makes rows of what others say, which node.Program
// writes into all tables. Anybody who reaches the TCP port can say what he likes: an agent for a network that is not
// trusted needs TLS with certificates of both sides.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

func main() {
	local := flag.String("local", "", "address of this host")
	peers := flag.String("peers", "", "addresses of the other agents, with commas between them")
	vni := flag.Uint("vni", 100, "segment")
	dev := flag.String("dev", "tap0", "TAP in the segment")
	tcp := flag.String("port", "4788", "TCP port of all agents")
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *local, *peers, frame.VNI(*vni), *dev, *tcp); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, local, peers string, vni frame.VNI, dev, tcp string) error {
	addr, err := netip.ParseAddr(local)
	if err != nil {
		return fmt.Errorf("-local: %w", err)
	}
	a, err := newAgent(node.Options{Log: slog.Default()}, addr, vni)
	if err != nil {
		return err
	}
	defer a.node.Close()
	tap, err := port.OpenTAP(dev, nil)
	if err != nil {
		return err
	}
	if err := a.segment.Add(tap, nil); err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(local, tcp))
	if err != nil {
		return err
	}
	for _, p := range strings.FieldsFunc(peers, func(r rune) bool { return r == ',' }) {
		a.peers = append(a.peers, net.JoinHostPort(p, tcp))
	}
	fmt.Printf("ready dev=%s vni=%d local=%v\n", dev, vni, a.vtep)
	return a.run(ctx, l)
}

// An agent is a node with one segment, and its control plane.
type agent struct {
	node    *node.Node
	segment *node.VSI
	vtep    netip.AddrPort // of this agent

	peers   []string // the control planes of the others, HOST:PORT
	running sync.WaitGroup

	mu      sync.Mutex
	hosts   map[host]bool // that are here
	changed chan struct{} // closed at the next change of hosts
}

// newAgent makes a node with a tunnel and a segment. Its tunnel accepts packets from those only that the control plane
// has announced, and the segment answers ARP for their hosts.
func newAgent(o node.Options, local netip.Addr, vni frame.VNI) (a *agent, err error) {
	a = &agent{hosts: map[host]bool{}, changed: make(chan struct{})}
	if a.node, err = node.New(&o); err != nil {
		return nil, err
	}
	tunnel := node.Tunnel{Local: local, Config: vtep.Config{Peers: vtep.ListedPerVNI}}
	t, err := a.node.Tunnel("vx", tunnel)
	if err == nil {
		a.vtep = tunnel.AddrPort()
		a.segment, err = a.node.Segment(vni, &node.Segment{
			Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}},
			VSIConfig:  vswitch.VSIConfig{NoFlood: vswitch.UnknownUnicast}, // who is not announced is not there
		})
	}
	if err == nil {
		err = a.segment.Join(t)
	}
	if err != nil {
		a.node.Close()
		return nil, err
	}
	return a, nil
}

// run carries frames and exchanges hosts until ctx ends.
func (a *agent) run(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer a.running.Wait()
	defer cancel()
	context.AfterFunc(ctx, func() { l.Close() })
	a.running.Go(func() { a.watch(ctx) })
	a.running.Go(func() { a.serve(ctx, l) })
	for _, p := range a.peers {
		a.running.Go(func() { a.follow(ctx, p) })
	}
	return a.node.Run(ctx)
}
