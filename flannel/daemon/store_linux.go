package daemon

import (
	"context"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
)

// store opens the store that the flags say. done closes it.
func (d *daemon) store(ctx context.Context) (s flannel.Store, done func() error, err error) {
	if !d.kubernetes {
		kv, err := etcd.New(&d.etcd)
		if err != nil {
			return nil, nil, err
		}
		return &flannel.Registry{KV: kv}, kv.Close, nil
	}
	c, err := d.open(&d.kube)
	if err != nil {
		return nil, nil, err
	}
	if d.unavailable {
		d.tell = c.Available
	}
	d.given(ctx, c)
	return c, c.Close, nil
}

// given asks for the addresses that an operator has given the node, until there is an answer, and uses them as flags.
func (d *daemon) given(ctx context.Context, c ClusterStore) {
	for said := false; ; said = true {
		four, six, err := c.PublicIPs(ctx)
		if err == nil {
			if four.IsValid() {
				d.publicIP = four.String()
			}
			if six.IsValid() {
				d.publicIPv6 = six.String()
			}
			return
		}
		if !said {
			d.log.Warn("vxflanneld: no node yet", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// available tells the node that pods can be made, again until it has heard.
func (d *daemon) available(ctx context.Context) {
	if d.tell == nil {
		return
	}
	if err := d.tell(ctx); err != nil {
		d.log.Warn("vxflanneld: the node does not know that pods can be made", "err", err)
		return
	}
	d.tell = nil
}
