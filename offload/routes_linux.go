package offload

import (
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A way is what routing looks at.
type way struct {
	local, peer netip.Addr
	mark        uint32
	device      string
}

// An exit is a device by which packets leave. The zero exit is none, or one without Ethernet.
type exit struct{ index, mtu int }

// routes remembers by which devices peers are reached, and follows changes of routes, addresses and devices.
type routes struct {
	home    *home
	known   map[way]exit
	changed chan struct{}
	used    sync.Map    // numbers of devices that flows use
	devices atomic.Bool // one of these has changed
	done    chan struct{}
}

func newRoutes(h *home) (*routes, error) {
	r := &routes{home: h, known: map[way]exit{}, changed: make(chan struct{}, 1), done: make(chan struct{})}
	// They end with done. One that fails, as by an overflow, says so once.
	links, changes, addrs := make(chan netlink.LinkUpdate), make(chan netlink.RouteUpdate), make(chan netlink.AddrUpdate)
	err := netlink.LinkSubscribe(links, r.done)
	if err == nil {
		err = netlink.RouteSubscribe(changes, r.done)
	}
	if err == nil {
		err = netlink.AddrSubscribe(addrs, r.done)
	}
	if err != nil {
		close(r.done)
		return nil, err
	}
	go follow(r, links, func(u netlink.LinkUpdate) {
		if _, ok := r.used.Load(int(u.Index)); ok {
			r.devices.Store(true)
		}
	})
	go follow(r, changes, func(netlink.RouteUpdate) {})
	go follow(r, addrs, func(netlink.AddrUpdate) {})
	return r, nil
}

func follow[T any](r *routes, updates <-chan T, each func(T)) {
	for u := range updates {
		each(u)
		r.stir()
	}
	r.devices.Store(true)
	r.stir()
}

func (r *routes) stir() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *routes) close() { close(r.done) }

// to returns the device by which packets leave to a peer.
func (r *routes) to(w way) exit {
	x, known := r.known[w]
	if !known {
		x = r.find(w)
		r.known[w] = x
	}
	return x
}

// keep forgets the ways that no flow takes, if there are many: strangers may be peers.
func (r *routes) keep(entries map[vswitch.Pair]*entry) {
	if len(r.known) <= 2*len(entries)+256 {
		return
	}
	known := make(map[way]exit, len(entries))
	for _, e := range entries {
		if x, ok := r.known[e.plan.via]; ok {
			known[e.plan.via] = x
		}
	}
	r.known = known
}

// differ looks for all ways again, and reports whether one is another.
func (r *routes) differ() bool {
	was := maps.Clone(r.known)
	clear(r.known)
	differs := false
	for w, x := range was {
		differs = r.to(w) != x || differs
	}
	return differs
}

// find asks the kernel.
func (r *routes) find(w way) (x exit) {
	o := &netlink.RouteGetOptions{SrcAddr: w.local.Unmap().AsSlice(), Mark: w.mark, Oif: w.device}
	list, err := r.home.link.RouteGetWithOptions(w.peer.Unmap().AsSlice(), o)
	if err != nil || len(list) == 0 || list[0].Type != unix.RTN_UNICAST {
		return x
	}
	r.used.Store(list[0].LinkIndex, nil) // before it is looked at
	link, err := r.home.link.LinkByIndex(list[0].LinkIndex)
	if err != nil || link.Attrs().EncapType != "ether" || link.Attrs().Flags&net.FlagLoopback != 0 {
		return x
	}
	return exit{link.Attrs().Index, link.Attrs().MTU}
}
