package calico

import (
	"context"

	"github.com/vxswitch/vxswitch/flannel/etcd"
)

// A Datastore is where the resources of a cluster are. It gives keys and values as calicoctl and Calico's IP address management write them
// in etcd; package resource lists the keys. Module calico/kube has that of clusters whose datastore is the API of Kubernetes.
type Datastore interface {
	// Follow tells r of all keys that begin with one of the prefixes, and then of each change, until ctx is done or something fails.
	// It calls r from one goroutine at a time.
	Follow(ctx context.Context, prefixes []string, r Reader) error
}

// A Reader is told of keys and values, as an [etcd.Reader] is.
type Reader interface {
	etcd.Reader
	Wrong(key string, err error) // it is there, and has no value that can be read: err says why
}

// Follow implements [Datastore].
func (e *Etcd) Follow(ctx context.Context, prefixes []string, r Reader) error {
	client, err := e.Dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Follow(ctx, prefixes, r)
}
