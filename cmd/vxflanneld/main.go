// Vxflanneld makes this host a node of a flannel network, in the place of flanneld: with its flags and environment, its leases in
// etcd and its subnet file, and without the kernel's vxlan.
//
//	vxflanneld -etcd-endpoints http://10.0.0.1:2379 -iface eth0
//
// Package flannel/daemon does the work. The program requires CAP_NET_ADMIN.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/vxswitch/vxswitch/cmd/internal/version"
	"github.com/vxswitch/vxswitch/flannel/daemon"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(daemon.Main(ctx, os.Args[1:], os.Environ(), version.Of("vxflanneld"), os.Stdout, os.Stderr, nil))
}
