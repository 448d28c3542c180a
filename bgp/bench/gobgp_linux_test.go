package bench

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/bgp/internal/gobgp"
)

// A counter is a handler of the engine that counts routes, which are all of one peer, and does nothing else.
type counter struct{ atomic.Int64 }

func (c *counter) Learned(list []engine.Path)       { c.Add(int64(len(list))) }
func (c *counter) Withdrawn(list []engine.Path)     { c.Add(-int64(len(list))) }
func (c *counter) Session(netip.Addr, bool, string) {}

// runGoBGP runs the engine of a Speaker without the Speaker and the node. Blocks come in order, as far as it knows.
func runGoBGP() (there func(int) bool, stop func(), err error) {
	e := gobgp.New(engine.Config{AS: as, RouterID: leafAddr})
	err = e.SetPeers([]engine.Peer{{Addr: feederAddr, AS: as, Local: leafAddr, Port: 179, Hold: 90 * time.Second, Retry: time.Second, Limit: 1 << 18}})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := new(counter)
	go e.Run(ctx, c)
	return func(i int) bool { return int(c.Load()) > i }, cancel, nil
}
