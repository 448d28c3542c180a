package hostnet

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// FollowConfig says which routes of a Plane the host has, too.
type FollowConfig struct {
	VRF     string    // whose prefixes
	Segment frame.VNI // segment of the device: prefixes that lead there are the host's own, and left out

	Also []Route // routes beside those of the rows, such as the prefixes of the VRF's interfaces

	// Route returns the route for a prefix, or false for none. A row without Via is a blackhole. By default each prefix has
	// one without a next hop, but the default route has none: with that the host's own packets would enter the VRF, those of
	// the tunnels as well.
	Route func(owner string, row control.Prefix) (Route, bool)

	Failed func(error) // is called with the errors of SetRoutes, in a goroutine; it must not call stop
}

// follower has the rows of one VRF.
type follower struct {
	cfg  FollowConfig
	host *Host

	mu   sync.Mutex
	rows map[row]struct{}

	kick, done, ended chan struct{}
}

type row struct {
	owner string
	control.Prefix
}

// Follow gives the kernel a route into the device for every prefix that the VRF has a route for, as they come and go: not
// for rows that wait, but for blackholes, whose packets the VRF drops. It calls SetRoutes, which must not be called
// beside it. The function that it returns ends that; the routes stay until Close.
func Follow(p *control.Plane, h *Host, cfg *FollowConfig) (stop func()) {
	f := &follower{cfg: *cfg, host: h, rows: map[row]struct{}{}, kick: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	f.cfg.Also = slices.Clone(cfg.Also)
	if f.cfg.Route == nil {
		f.cfg.Route = func(_ string, r control.Prefix) (Route, bool) { return Route{Prefix: r.Prefix}, r.Prefix.Bits() > 0 }
	}
	unwatch := p.WatchRoutes(f.rowsOf)
	f.kicked() // also with no rows at all
	go f.run()
	return sync.OnceFunc(func() {
		unwatch()
		close(f.done)
		<-f.ended
	})
}

// rowsOf notes what has changed. The Plane is locked.
func (f *follower) rowsOf(owner string, add, del []control.Row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range del {
		if p, ok := r.(control.Prefix); ok && p.VRF == f.cfg.VRF {
			delete(f.rows, row{owner, p})
			f.kicked()
		}
	}
	for _, r := range add {
		if p, ok := r.(control.Prefix); ok && p.VRF == f.cfg.VRF {
			f.rows[row{owner, p}] = struct{}{}
			f.kicked()
		}
	}
}

func (f *follower) kicked() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// run sets the routes after changes, of which there may have been many.
func (f *follower) run() {
	defer close(f.ended)
	for {
		select {
		case <-f.done:
			return
		case <-f.kick:
		}
		if err := f.host.SetRoutes(f.routes()...); err != nil {
			if f.cfg.Failed != nil {
				f.cfg.Failed(err)
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}
}

// routes returns one for each prefix.
func (f *follower) routes() []Route {
	f.mu.Lock()
	rows := maps.Clone(f.rows)
	f.mu.Unlock()
	routes, own := map[key]Route{}, map[key]bool{}
	for r := range rows {
		route, ok := f.cfg.Route(r.owner, r.Prefix)
		if !ok {
			continue
		}
		k := route.key()
		routes[k] = route
		own[k] = own[k] || r.Via != (control.Via{}) && r.Via.VNI == f.cfg.Segment
	}
	maps.DeleteFunc(routes, func(k key, _ Route) bool { return own[k] })
	for _, r := range f.cfg.Also {
		routes[r.key()] = r
	}
	return slices.Collect(maps.Values(routes))
}
