package offload

import (
	"maps"
	"net"
	"net/netip"
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

// routes remembers by which devices peers are reached, and follows changes of routes, addresses and devices.
type routes struct {
	home    *home
	known   map[way]int // 0: none, or not over Ethernet
	changed chan struct{}
	devices atomic.Bool // the last changes were of devices, too
	done    chan struct{}
}

func newRoutes(h *home) (*routes, error) {
	r := &routes{home: h, known: map[way]int{}, changed: make(chan struct{}, 1), done: make(chan struct{})}
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
	go follow(links, func() { r.devices.Store(true); r.stir() })
	go follow(changes, r.stir)
	go follow(addrs, r.stir)
	return r, nil
}

func follow[T any](updates <-chan T, stir func()) {
	for range updates {
		stir()
	}
	stir()
}

func (r *routes) stir() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *routes) close() { close(r.done) }

// to returns the device by which packets leave to a peer.
func (r *routes) to(w way) (dev int, ok bool) {
	dev, known := r.known[w]
	if !known {
		dev = r.find(w)
		r.known[w] = dev
	}
	return dev, dev != 0
}

// keep forgets the ways that no flow takes, if there are many: strangers may be peers.
func (r *routes) keep(entries map[vswitch.Pair]*entry) {
	if len(r.known) <= 2*len(entries)+256 {
		return
	}
	known := make(map[way]int, len(entries))
	for _, e := range entries {
		if dev, ok := r.known[e.plan.via]; ok {
			known[e.plan.via] = dev
		}
	}
	r.known = known
}

// differ looks for all ways again, and reports whether one is another.
func (r *routes) differ() bool {
	was := maps.Clone(r.known)
	clear(r.known)
	differs := false
	for w, dev := range was {
		if now, _ := r.to(w); now != dev {
			differs = true
		}
	}
	return differs
}

// find asks the kernel.
func (r *routes) find(w way) int {
	o := &netlink.RouteGetOptions{SrcAddr: w.local.Unmap().AsSlice(), Mark: w.mark, Oif: w.device}
	list, err := r.home.link.RouteGetWithOptions(w.peer.Unmap().AsSlice(), o)
	if err != nil || len(list) == 0 || list[0].Type != unix.RTN_UNICAST {
		return 0
	}
	link, err := r.home.link.LinkByIndex(list[0].LinkIndex)
	if err != nil || link.Attrs().EncapType != "ether" || link.Attrs().Flags&net.FlagLoopback != 0 {
		return 0
	}
	return link.Attrs().Index
}
