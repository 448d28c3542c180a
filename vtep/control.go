package vtep

import (
	"fmt"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A control is the VTEP as its switch sees it.
type control VTEP

// Control returns what the switch does with the VTEP. A program that uses a VTEP without a switch calls its Open
// for each VNI.
func (v *VTEP) Control() frame.TunnelControl { return (*control)(v) }

// Open makes the VTEP accept frames of a VNI, and join the multicast groups in its flood list. If it cannot
// join them, the VNI stays shut.
func (c *control) Open(tag uint32) error {
	v := (*VTEP)(c)
	if !frame.VNI(tag).Valid() {
		return fmt.Errorf("vtep: VNI %d: must be 0 to %d", tag, frame.MaxVNI)
	}
	if tag != 0 && v.cfg.Type.Bare() {
		return fmt.Errorf("vtep: tag %d: IP-in-IP has one network, tag 0", tag)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return err
	}
	n := v.network(frame.VNI(tag))
	if n.open.Load() {
		return nil
	}
	if err := v.join(n.flood.Load()); err != nil {
		v.forget(frame.VNI(tag), n)
		return err
	}
	n.open.Store(true)
	v.changed()
	return nil
}

// Shut makes the VTEP drop frames of a VNI as unknown-vni, and leave multicast groups that no other open VNI
// uses. The flood list, the peers of Allow and the marking are kept for the next Open.
func (c *control) Shut(tag uint32) {
	v := (*VTEP)(c)
	v.mu.Lock()
	defer v.mu.Unlock()
	if n, ok := v.networks.Load(vniKey(tag)); ok {
		if n.open.Swap(false) {
			v.leave(n.flood.Load())
		}
		v.changed()
		v.forget(frame.VNI(tag), n)
	}
}

// Retire begins to remove deleted peers, and learned peers that were not heard since the last call and for which
// named returns false. It also forgets path MTUs older than PathMTUAge. It returns the numbers of the removed peers,
// which no frame comes in with any more.
func (c *control) Retire(named func(peer uint16) bool) []uint16 {
	v := (*VTEP)(c)
	v.mu.Lock()
	defer v.mu.Unlock()
	nums := v.evicted
	v.evicted, v.evictable = nil, nil
	now := time.Now()
	for h := range v.hops.all {
		if h.path.Load() != 0 && now.Sub(h.learned) >= PathMTUAge {
			v.forgetPathMTU(h)
		}
		if h.listed() || h.retired {
			continue
		}
		heard := v.heard(h)
		silent := heard == h.heard
		quiet := h.idle && silent
		h.idle, h.heard = !named(h.num), heard
		if !h.deleted && (!quiet || !h.idle) {
			if silent && heard < fewPackets && h.learnable() {
				v.evictable = append(v.evictable, h)
			}
			continue
		}
		v.retire(h)
		nums = append(nums, h.num)
	}
	if nums != nil {
		v.gone.Add(1) // after they have left byHost
	}
	return nums
}

// Tell has f called for peers and for changes of the local address.
func (c *control) Tell(f func(frame.Event)) {
	v := (*VTEP)(c)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tell = f
	for h := range v.hops.all {
		if !h.retired {
			v.toldUp(h)
		}
	}
}

// toldUp tells the switch of a peer that it does not know. v.mu is held.
func (v *VTEP) toldUp(h *hop) {
	v.told(frame.EventPeerUp, h.num)
	if h.dead() {
		v.told(frame.EventPeerDead, h.num)
	}
}

// told tells the switch, if there is one. v.mu is held.
func (v *VTEP) told(kind frame.EventKind, peer uint16) {
	if v.tell != nil {
		v.tell(frame.Event{Kind: kind, Dest: frame.NewDest(0, peer)})
	}
}

// Peers returns the numbers in use.
func (c *control) Peers() (nums []uint16) {
	v := (*VTEP)(c)
	v.mu.Lock()
	defer v.mu.Unlock()
	for h := range v.hops.all {
		if !h.retired {
			nums = append(nums, h.num)
		}
	}
	return nums
}

// Free makes numbers that Retire returned available for other peers.
func (c *control) Free(peers []uint16) {
	v := (*VTEP)(c)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range peers {
		if h := v.hops.get(n); h != nil && h.retired {
			v.forgetPathMTU(h)
			v.setHeader(h, nil)
			v.uncount(n)
			v.hops.remove(n)
		}
	}
}
