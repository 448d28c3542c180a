package node

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// mtuEvery is how often the MTUs of the underlays are looked at; it is longer where that takes more than a hundredth of the time.
const mtuEvery = 10 * time.Second

// followMTUs has tunnels, and what fits them, follow the MTUs of the underlays' interfaces, until ctx is done.
func (n *Node) followMTUs(ctx context.Context) {
	bad := map[string]string{} // the last error of a tunnel
	for wait := mtuEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		begun := time.Now()
		n.followMTU(bad)
		wait = max(mtuEvery, 100*time.Since(begun))
	}
}

// followMTU does so once. bad has the last error of each tunnel, which is logged once.
func (n *Node) followMTU(bad map[string]string) {
	n.updates.Lock()
	defer n.updates.Unlock()
	n.mu.Lock()
	tunnels := maps.Clone(n.tunnels)
	n.mu.Unlock()
	followed := false // without n.mu, so that nobody waits for the system
	for name, t := range tunnels {
		changed, err := t.v.FollowMTU()
		if changed {
			followed = true
			n.log.Info("node: the MTU of a tunnel follows the underlay", "tunnel", name, "mtu", t.v.MTU(0))
		}
		was := bad[name]
		if bad[name] = fmt.Sprint(err); err != nil && bad[name] != was {
			n.log.Warn("node: the MTU of a tunnel does not follow the underlay", "tunnel", name, "err", err)
		}
	}
	if !followed {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fit()
}
