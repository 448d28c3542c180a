package etcd_test

import (
	"context"
	"fmt"
	"log"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
)

// All leases of a network, as they come and go. It needs an etcd on this host.
func Example() {
	kv, err := etcd.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer kv.Close()
	store := &flannel.Registry{KV: kv}
	err = store.Watch(context.Background(), func(c flannel.Change) {
		for _, r := range c.Set {
			l, err := flannel.ParseLease(r.Key, r.Value)
			fmt.Println(l.Subnet, "is at", l.IPv4.PublicIP, err)
		}
		fmt.Println("gone:", c.Deleted)
	})
	log.Fatal(err)
}
