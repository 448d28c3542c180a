package daemon

import (
	"context"
	"time"
)

// patience is the pause between two tries to reach the API server.
const patience = time.Second

// given asks for the addresses that an operator has given the node, until there is an answer, and uses them as flags.
func (c *command) given(ctx context.Context, k ClusterStore) {
	c.until(ctx, "vxflanneld: no node yet", func() error {
		four, six, err := k.PublicIPs(ctx)
		if four.IsValid() {
			c.cfg.PublicIP = four
		}
		if six.IsValid() {
			c.cfg.PublicIPv6 = six
		}
		return err
	})
}

// available tells the node that pods can be made, once they can.
func (c *command) available(ctx context.Context, ready <-chan struct{}, k ClusterStore) {
	select {
	case <-ready:
		c.until(ctx, "vxflanneld: the node does not know that pods can be made", func() error { return k.Available(ctx) })
	case <-ctx.Done():
	}
}

// until calls try until it succeeds, and logs the first error.
func (c *command) until(ctx context.Context, what string, try func() error) {
	for said := false; ctx.Err() == nil; said = true {
		err := try()
		if err == nil {
			return
		}
		if !said {
			c.log.Warn(what, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(patience):
		}
	}
}
