//go:build linux

// Vxflanneld makes this host a node of a flannel network, in the place of flanneld: with its flags and environment, its leases in
// etcd or in the nodes of Kubernetes, and its subnet file, and without the kernel's vxlan.
//
//	vxflanneld -etcd-endpoints http://10.0.0.1:2379 -iface eth0
//	NODE_NAME=worker-1 vxflanneld -kube-subnet-mgr -kubeconfig-file /etc/kubernetes/flannel.conf -ip-masq
//
// Package flannel/daemon does the work. The program requires CAP_NET_ADMIN.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/vxswitch/vxswitch/cmd/internal/version"
	"github.com/vxswitch/vxswitch/flannel/daemon"
	"github.com/vxswitch/vxswitch/flannel/kube"
	"github.com/vxswitch/vxswitch/offload"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(daemon.Main(ctx, os.Args[1:], os.Environ(), &daemon.Program{
		Version: version.Of("vxflanneld"), Stdout: os.Stdout, Stderr: os.Stderr, Cluster: cluster, Offload: carry,
	}))
}

// carry has the kernel carry flows, for -datapath.
func carry(sw *vswitch.Switch) (io.Closer, error) { return offload.New(sw, nil) }

// cluster opens the store in Kubernetes.
func cluster(c *daemon.Cluster) (daemon.ClusterStore, error) {
	s, err := kube.New(&kube.Config{URL: c.URL, Kubeconfig: c.Kubeconfig, Node: c.Node, Pod: c.Pod, Prefix: c.Prefix, NetworkFile: c.NetworkFile})
	if err != nil {
		return nil, err
	}
	return s, nil
}
