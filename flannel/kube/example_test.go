package kube_test

import (
	"context"
	"fmt"
	"log"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/kube"
)

// All leases of a cluster, as they come and go. It needs an API server.
func Example() {
	store, err := kube.New(&kube.Config{Kubeconfig: "/etc/kubernetes/flannel.conf", Node: "worker-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	err = store.Watch(context.Background(), func(c flannel.Change) {
		for _, r := range c.Set {
			l, err := r.Lease()
			fmt.Println(r.Key, "has", l.Subnet, "and is at", l.IPv4.PublicIP, err)
		}
		fmt.Println("gone:", c.Deleted)
	})
	log.Fatal(err)
}
