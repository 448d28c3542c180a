package vtep

import (
	"errors"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// A Path is how Ethernet frames of one network travel to a peer and from it: what an offload has to do that carries them past
// the VTEP.
type Path struct {
	Type     encap.Type // TypeVXLAN, or TypeGPE for Ethernet frames
	Underlay Underlay
	Local    netip.AddrPort // own address, and the port that the peer sends to
	Peer     netip.AddrPort // address of the peer, and the port that it is sent to
	VNI      frame.VNI      // of frames to the peer; those from it have the tag
	Header   Header         // outer headers, without zero values but Sockets
	DSCP     DSCP           // what becomes of the outer DSCP of frames from the peer, not DSCPDefault
	MTU      int            // longest frame to the peer
	Heard    bool           // frames of the network are accepted from the peer

	SymmetricHash bool // both directions of a flow have one hash
}

// Why a peer has no [Path].
var (
	ErrNoPeer        = errors.New("no-peer")       // no such peer, a group of several, or a multicast group
	ErrEncapsulation = errors.New("encapsulation") // the tunnel is neither plain VXLAN nor VXLAN-GPE for Ethernet without Services
)

// Path returns how frames of the VNI tag travel to and from a peer. It holds until the functions of Watch are called, but for Heard,
// which becomes true without a call. The error is ErrNoPeer or ErrEncapsulation.
func (v *VTEP) Path(peer uint16, tag uint32) (Path, error) {
	if v.cfg.Type.Bare() || v.cfg.Own != nil || v.cfg.GBP || v.services.Load() != nil {
		return Path{}, ErrEncapsulation
	}
	h := v.only(peer)
	if h == nil || h.family < 0 || h.mcast {
		return Path{}, ErrNoPeer
	}
	l := v.families[h.family].link.Load()
	p := Path{Type: v.cfg.Type, Underlay: l.u, Local: l.u.LocalAddr(), Peer: v.addr(h.to.Load()[0]), VNI: h.vni, Header: v.headerTo(h).config(), MTU: v.mtuTo(h), SymmetricHash: v.cfg.SymmetricHash}
	if p.VNI == 0 {
		p.VNI = frame.VNI(tag)
	}
	if mark := v.tosOf(tag); mark != nil {
		p.Header.TOS = mark.value()
	}
	n, ok := v.networks.Load(vniKey(tag))
	if p.DSCP = v.cfg.DSCP; ok {
		p.DSCP = v.dscpOf(n)
	}
	p.DSCP = max(p.DSCP, DSCPKeep)
	now, _ := v.byHost.Load(h.key())
	p.Heard = now == h && ok && n.open.Load() && (v.cfg.Peers == AnyPeer || h.known.Load() && (v.cfg.Peers == ListedOnly || n.lists(h)))
	return p, nil
}

// config returns the Header that compiles to h.
func (h *header) config() Header {
	c := Header{TTL: Value(h.ttl), TOS: h.tos.value(), DF: DFUnset, ECN: h.ecn, Sockets: h.set}
	if h.ttlIn {
		c.TTL = Inherit
	}
	switch {
	case h.dfIn:
		c.DF = DFInherit
	case h.df:
		c.DF = DFSet
	}
	return c
}

// Watch has f called after each change of a Path, with locks held: it must not block or call the VTEP. That a peer is new, or is heard
// from now on, is none, since nothing depends on it yet. Stop ends the calls.
func (v *VTEP) Watch(f func()) (stop func()) { return v.watchers.Add(func(struct{}) { f() }) }

// changed calls the functions of Watch.
func (v *VTEP) changed() { v.watchers.Tell(struct{}{}) }

// Carried counts frames that an offload has carried to a peer (tx) or from it (rx).
func (v *VTEP) Carried(peer uint16, rx, tx frame.Count) {
	h := v.only(peer)
	if h == nil {
		return
	}
	if rx != (frame.Count{}) {
		v.received.Of(0).Of(uint32(h.num)).add(rx.Frames, rx.Bytes, time.Now().Unix())
		h.clearFailures()
	}
	if tx != (frame.Count{}) {
		v.sent.Of(0).Of(uint32(h.num)).add(tx.Frames, tx.Bytes)
		v.txFrames.Add(tx.Frames)
		v.txBytes.Add(tx.Bytes)
	}
}
