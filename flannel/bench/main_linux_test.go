package bench

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/vtep"
)

// program is the variable of the environment that makes this program one of the contenders.
const program = "VXSWITCH_FLANNEL_BENCH"

// TestMain is a contender if the environment says so: the test starts it in namespaces.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv(program) == "l3" {
		if err := l3(ctx, os.Args[1], netip.MustParseAddr(os.Args[2])); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	bin, err := os.MkdirTemp("", "flannel-bench-")
	if err != nil {
		panic(err)
	}
	vxflanneld = filepath.Join(bin, "vxflanneld")
	status := m.Run()
	os.RemoveAll(bin)
	os.Exit(status)
}

// vxflanneld is the program, once TestBench has built it.
var vxflanneld string

// l3 is a node whose switch routes, with one pod on the TAP pod0. It prints when it has all leases that are there, when it has the pod,
// and at each SIGUSR1 how many leases of others it has.
func l3(ctx context.Context, url string, ip netip.Addr) error {
	store, err := etcd.New(&etcd.Config{Endpoints: []string{url}})
	if err != nil {
		return err
	}
	defer store.Close()
	m, err := newRouted(&flannel.Registry{KV: store}, ip, nil)
	if err != nil {
		return err
	}
	ended := m.run(ctx)
	select {
	case err := <-ended:
		return err
	case <-m.Ready():
	}
	own := m.Status().Own.Subnet
	fmt.Printf("ready subnet=%s\n", own.Key())
	tap, err := port.OpenTAP(pod, &port.DeviceConfig{MTU: 1450})
	if err != nil {
		return err
	}
	if err := m.pods.Add(tap, nil); err != nil {
		return err
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	fmt.Println("pod is there")
	for {
		select {
		case err := <-ended:
			return err
		case <-asked:
			fmt.Printf("leases %d\n", m.Status().Leases)
		}
	}
}

// routedNode is a node of package routed.
type routedNode struct {
	*flannel.Plane
	node *node.Node
	pods *node.VSI
}

// newRouted makes one. listen is as in node.Options.
func newRouted(store flannel.Store, ip netip.Addr, listen func(*node.Tunnel) (vtep.Underlay, error)) (*routedNode, error) {
	n, err := node.New(&node.Options{Owners: []string{flannel.DefaultOwner}, Listen: listen})
	if err != nil {
		return nil, err
	}
	pods, err := n.Segment(routed.DefaultPods, nil)
	if err != nil {
		return nil, err
	}
	shape, err := routed.New(&routed.Config{Node: n})
	if err != nil {
		return nil, err
	}
	plane, err := flannel.NewPlane(&flannel.PlaneConfig{Store: store, Shape: shape, PublicIP: ip})
	return &routedNode{plane, n, pods}, err
}

// run runs the node and its plane until ctx ends, and then tells the plane's error.
func (m *routedNode) run(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	running := make(chan struct{})
	nodeCtx, stop := context.WithCancel(context.WithoutCancel(ctx)) // longer than the plane
	go func() {
		defer close(running)
		m.node.Run(nodeCtx)
	}()
	go func() {
		err := m.Plane.Run(ctx)
		stop()
		<-running
		m.node.Close()
		ended <- err
	}()
	return ended
}

// soon is how long anything is waited for.
const soon = 2 * time.Minute
