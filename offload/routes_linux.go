package offload

import (
	"encoding/binary"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
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

// routes remembers by which devices peers are reached, and follows changes of routes, rules, addresses and devices.
type routes struct {
	home    *home
	known   map[way]exit
	changed chan struct{}
	socket  *nl.NetlinkSocket
	closed  atomic.Bool

	policies *nl.NetlinkSocket // of IPsec; nil: the kernel has none
	ipsec    bool              // there are some

	mu   sync.Mutex
	used map[int]int // devices that flows use, with the MTUs that the kernel has told; 0 before
	news news
}

// news is what has happened to devices that flows use.
type news struct {
	changed bool             // one of them
	gone    map[int]struct{} // deleted, or moved to another network namespace
	lost    bool             // perhaps more
}

// groups is what is followed.
var groups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
	unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_NEXTHOP,
}

func newRoutes(h *home) (*routes, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return nil, err
	}
	r := &routes{home: h, known: map[way]exit{}, changed: make(chan struct{}, 1), socket: s, used: map[int]int{}}
	if r.policies, err = subscribePolicies(); err == nil && r.policies != nil {
		r.ipsec, err = h.findPolicies()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	go r.follow()
	if r.policies != nil {
		go r.followPolicies()
	}
	return r, nil
}

// follow tells of changes until close.
func (r *routes) follow() {
	for {
		list, from, err := r.socket.Receive()
		switch {
		case r.closed.Load():
			return
		case err != nil: // there were too many at once
			r.mu.Lock()
			r.news.changed, r.news.lost = true, true
			r.mu.Unlock()
		case from.Pid != nl.PidKernel:
			continue
		}
		for _, m := range list {
			if t := m.Header.Type; t == unix.RTM_NEWLINK || t == unix.RTM_DELLINK {
				r.link(t, m.Data)
			}
		}
		r.stir()
		if err != nil {
			time.Sleep(calm) // also if it is another error, which may stay
		}
	}
}

// link follows a device. Other changes than these do not matter to flows, and guests can cause many.
func (r *routes) link(kind uint16, data []byte) {
	x := nl.DeserializeIfInfomsg(data)
	if x.Family != unix.AF_UNSPEC {
		return // of a port of a bridge
	}
	index := int(x.Index)
	r.mu.Lock()
	defer r.mu.Unlock()
	was, used := r.used[index]
	if !used {
		return
	}
	if kind == unix.RTM_DELLINK {
		if r.news.gone == nil {
			r.news.gone = map[int]struct{}{}
		}
		r.news.gone[index], r.news.changed = struct{}{}, true
		delete(r.used, index)
		return
	}
	attrs, _ := nl.ParseRouteAttr(data[x.Len():])
	for _, a := range attrs {
		if a.Attr.Type != unix.IFLA_MTU {
			continue
		}
		if mtu := int(binary.NativeEndian.Uint32(a.Value)); mtu != was {
			r.used[index], r.news.changed = mtu, true
		}
	}
}

// use has a device followed, and reports whether it was not: what is known of it may be old.
func (r *routes) use(index int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, used := r.used[index]
	if !used {
		r.used[index] = 0
	}
	return !used
}

// take returns the news since the last call.
func (r *routes) take() (n news) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, r.news = r.news, n
	return n
}

func (r *routes) stir() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *routes) close() {
	r.closed.Store(true)
	r.socket.Close()
	if r.policies != nil {
		r.policies.Close()
	}
}

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
	if r.policies != nil {
		ipsec, err := r.home.findPolicies()
		ipsec = ipsec || err != nil
		differs = ipsec != r.ipsec
		r.ipsec = ipsec
	}
	for w, x := range was {
		differs = r.to(w) != x || differs
	}
	return differs
}

// find asks the kernel.
func (r *routes) find(w way) (x exit) {
	o := &netlink.RouteGetOptions{SrcAddr: w.local.Unmap().AsSlice(), Mark: w.mark, Oif: w.device}
	list, err := r.home.link.RouteGetWithOptions(w.peer.Unmap().AsSlice(), o)
	if err != nil || len(list) == 0 || list[0].Type != unix.RTN_UNICAST || list[0].Encap != nil {
		return x
	}
	r.use(list[0].LinkIndex) // before it is looked at
	link, err := r.home.link.LinkByIndex(list[0].LinkIndex)
	if err != nil || link.Attrs().EncapType != "ether" || link.Attrs().Flags&net.FlagLoopback != 0 {
		return x
	}
	x = exit{link.Attrs().Index, link.Attrs().MTU}
	o.FIBMatch = true // the route itself: what routers have said of the path ends unheard, and is the VTEP's to follow
	if list, err = r.home.link.RouteGetWithOptions(w.peer.Unmap().AsSlice(), o); err == nil && len(list) > 0 && list[0].MTU != 0 {
		x.mtu = min(x.mtu, list[0].MTU)
	}
	return x
}
