package routed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// programEnv has what a program is told: the URL of etcd, the time to live of the lease, and the namespace of a pod.
const programEnv = "ROUTED_TEST"

// TestMain is the program if the environment says so: a test starts it in namespaces.
func TestMain(m *testing.M) {
	text := os.Getenv(programEnv)
	if text == "" {
		goleak.VerifyTestMain(m)
		return
	}
	err := program(strings.Fields(text))
	fmt.Println(err)
	if errors.Is(err, flannel.ErrLost) {
		os.Exit(3)
	}
	os.Exit(1)
}

// program is a node at 192.0.2.11 with a pod whose TAP stays.
func program(args []string) error {
	ttl, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	kv, err := etcd.New(&etcd.Config{Endpoints: args[:1], TTL: ttl, Timeout: time.Second, KeepAlive: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	n, err := node.New(&node.Options{Owners: []string{"flannel"}})
	if err != nil {
		return err
	}
	err = n.Apply(&node.Config{
		Ports:    []node.Port{{Name: "eth0", DeviceConfig: port.DeviceConfig{Namespace: args[2], Persistent: true, MTU: 1450}}},
		Segments: []node.Segment{{VNI: routed.DefaultPods, Members: []node.Member{{Port: "eth0"}}}},
	})
	if err != nil {
		return err
	}
	shape, err := routed.New(&routed.Config{Node: n})
	if err != nil {
		return err
	}
	plane, err := flannel.NewPlane(&flannel.PlaneConfig{Store: &flannel.Registry{KV: kv}, Shape: shape, PublicIP: netip.MustParseAddr("192.0.2.11"),
		Log: slog.New(slog.NewTextHandler(os.Stdout, nil))})
	if err != nil {
		return err
	}
	go n.Run(context.Background())
	go func() {
		<-plane.Ready()
		fmt.Println("ready", plane.Status().Own.Subnet)
	}()
	return plane.Run(context.Background())
}
