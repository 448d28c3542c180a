package vtep

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/perworker"
)

// reader turns datagrams into frames of the overlay, in place.
type reader struct {
	v      *VTEP
	in     frame.Reader // queue of link
	queue  int
	link   *link
	family *family

	// What was looked up for the previous packet of the batch. Most packets come in runs.
	src     frame.Endpoint
	bad     frame.Reason // why packets from src are dropped
	from    *hop         // of src; nil = unknown
	run     uint64       // packets from src
	vni     frame.VNI
	open    bool     // vni is open
	net     *network // of vni
	allowed *hop     // may send frames of vni, if peers are listed for each VNI
	dscp    DSCP     // of vni
	head    int      // length of the header, of an encapsulation of the program's own

	size   uint64                     // bytes of the frames of run
	took   bool                       // a handler has taken a packet of this batch
	now    int64                      // of this batch, in Unix seconds
	counts *perworker.Table[received] // of hops
}

// noVNI is the VNI of a packet with an invalid header. No attachment has it, so the drop counts for none.
const noVNI = frame.MaxVNI + 1

// Read reads one batch from the underlay. Refused packets stay in it, with Drop set, and with noVNI unless their
// VNI could be read.
func (r *reader) Read(b *frame.Batch) error {
	for {
		if err := r.next(b); err != nil {
			return err
		}
		if !r.took {
			return nil
		}
		if r.forget(b); len(b.Frames) > 0 {
			return nil
		}
	}
}

// next reads one batch, in which Drop is taken for packets that a handler has.
func (r *reader) next(b *frame.Batch) error {
	for {
		err := r.in.Read(b)
		if err == nil {
			break
		}
		l := r.family.link.Load()
		if l == r.link {
			return err
		}
		r.link, r.in = l, l.u.Readers()[r.queue] // SetUnderlay has paused or closed the old one
	}
	b.Gone, b.Known = &r.v.gone, r.v.gone.Load()
	r.open, r.allowed, r.now = false, nil, clock(b)
	for i := range b.Frames {
		f := &b.Frames[i]
		f.VNI = noVNI
		if f.Drop == frame.NotDropped {
			f.Drop = r.accept(f, &b.Outer[i])
			if f.Kind != frame.Ethernet && f.Drop == frame.NotDropped {
				b.Room(f, encap.EthernetLen) // for the header that a gateway adds
			}
		}
	}
	r.peer(&frame.Endpoint{})
	return nil
}

// accept checks a packet in this order: source, tunnel header, VNI, the VNI's peers, reserved bits, inner length,
// ECN. The first failed check is the reason of the drop. The switch checks inner MACs. Nothing is learned from a
// refused packet.
func (r *reader) accept(f *frame.Frame, outer *frame.Outer) frame.Reason {
	v, src := r.v, &outer.Src
	f.Tunnel = true
	if src.IP != r.src.IP || src.Scope != r.src.Scope {
		r.peer(src)
	}
	if r.bad != frame.NotDropped {
		return r.refuse(f, r.bad)
	}
	if v.cfg.Peers != AnyPeer && (r.from == nil || !r.from.known.Load()) {
		return r.refuse(f, frame.UnknownPeer)
	}
	p, drop := r.unwrap(f)
	if drop != frame.NotDropped {
		return drop
	}
	// Two bytes show that most addresses are no groups, without a copy of the address.
	if ip := &outer.Dst.IP; (ip[0] == 0xff || ip[12] >= 0xe0) && outer.Dst.IsMulticast() {
		f.Replicated = true // all members of the group have it, so a hub does not forward it
	}
	if f.GSO.Flags != 0 { // the kernel's offload information is about the inner frame
		if drop := gso.Check(f); drop != frame.NotDropped {
			return drop
		}
	} else if gso.Pending(p, f.Kind) || f.GSO.Type != 0 {
		gso.Received(f, r.mtu())
	}
	if ecn := outer.TOS & 3; ecn != notECT {
		if drop := v.congestion(f, ecn); drop != frame.NotDropped {
			return drop
		}
	}
	if r.dscp > DSCPKeep {
		r.dscp.received(f, outer.TOS)
	}
	if r.from == nil {
		if badSource(f) {
			return frame.BadSourceMAC // checked here, before the sender becomes a peer
		}
		if r.from = v.learn(r.src); r.from == nil {
			return frame.NotDropped
		}
	}
	f.From = frame.NewDest(0, r.from.num)
	r.run++
	r.size += uint64(len(p))
	return frame.NotDropped
}

// mtu returns the length of the longest inner frame to the sender, behind a header like that of the packet. What is longer
// must be a superframe.
func (r *reader) mtu() int {
	n := r.family.longest()
	if r.from != nil {
		n = r.v.mtuTo(r.from)
	}
	if own := r.v.cfg.Own; own != nil {
		n += own.Header() - r.head
	}
	return n
}

// badSource reports whether the source MAC of a frame is not that of one host.
func badSource(f *frame.Frame) bool {
	if f.Kind != frame.Ethernet {
		return false
	}
	src := frame.MAC(f.Bytes()[6:12])
	return src.IsGroup() || src.IsZero() // not IsHost, of which the compiler makes more
}

// peer counts the packets of the previous sender, and looks up src as the next one.
func (r *reader) peer(src *frame.Endpoint) {
	if r.run > 0 {
		r.counts.Of(uint32(r.from.num)).add(r.run, r.size, r.now)
		r.from.clearFailures()
	}
	r.src, r.run, r.size, r.from, r.bad = src.Host(), 0, 0, nil, frame.NotDropped
	switch {
	case hostaddr.Check(netip.AddrFrom16(r.src.IP)) != nil:
		r.bad = frame.Martian
	case r.src == r.link.own:
		r.bad = frame.OwnAddress
	default:
		r.from, _ = r.v.byHost.Load(hostKey(r.src))
	}
}
