package main

import (
	"log/slog"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/node"
)

// A bgpKeeper runs the section bgp.
type bgpKeeper struct {
	keeper[bgp.Config, *bgp.Speaker]
}

func newBGP(n *node.Node, log *slog.Logger) *bgpKeeper {
	k := new(bgpKeeper)
	k.name, k.log = "bgp", log
	k.anew = (*bgp.Config).Restarts
	k.files = (*bgp.Config).CheckFiles
	k.configure = (*bgp.Speaker).Configure
	k.make = func(c *bgp.Config) (*bgp.Speaker, error) {
		with := *c
		with.Log = log.With("section", k.name)
		sp, err := bgp.New(n, &with)
		return sp, k.withKeys(err)
	}
	return k
}

// spoken returns what the section does; ok is false without one.
func (k *bgpKeeper) spoken() (x spoken, ok bool) {
	cfg := k.config()
	now, ok := k.status()
	if cfg == nil || !ok { // it may be removed between the two
		return x, false
	}
	x.BGP, x.addresses = newBGPState(now.since, cfg.AS, cfg.RouterID, cfg.VRF), cfg.NextHops()
	switch {
	case now.err != nil:
		x.State, x.Error, x.Again = sectionFailed, oneLine(now.err), &now.again
	case now.plane != nil:
		x.speaks(now.plane.Status(), now.plane.Routes)
	}
	return x, true
}
