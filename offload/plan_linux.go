package offload

import (
	"errors"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A plan is how the data path carries a flow out.
type plan struct {
	key    datapath.Key
	flow   datapath.Flow
	need   need
	via    way        // to the peer
	rx, tx *vtep.VTEP // that frames come out of, and go into; nil is none
}

// same reports whether two plans are one.
func (p *plan) same(q *plan) bool { return *p == *q }

// A need is a program on a device.
type need struct {
	index   int
	program datapath.Program
}

// Why a flow is not carried, beside what the switch and the VTEP say.
var (
	errPort      = errors.New("port")      // no device of the kernel's that frames can be taken from or given to
	errUnderlay  = errors.New("underlay")  // no UDP socket, or one of all addresses
	errNamespace = errors.New("namespace") // a device or socket is in another network namespace
	errChecksum  = errors.New("checksum")  // the outer UDP checksum is to be computed
	errHash      = errors.New("hash")      // both directions of a flow are to have one hash
	errRoute     = errors.New("route")     // there is none, or none over an Ethernet device
	errTransit   = errors.New("transit")   // from tunnel to tunnel
	errPeers     = errors.New("peers")     // the VTEP does not accept frames of the peer
	errMarking   = errors.New("marking")   // the outer DSCP depends on the priority of frames, or matters on receipt
)

// inside returns what the decorators are around that look at frames only.
func inside(x any) any {
	for {
		d, ok := x.(interface{ Inside() any })
		if !ok {
			return x
		}
		x = d.Inside()
	}
}

// planFor completes how for f.
func (o *Offload) planFor(f *vswitch.Flow, how *plan) error {
	from, to := inside(f.In), inside(f.Out)
	how.rx, _ = from.(*vtep.VTEP)
	how.tx, _ = to.(*vtep.VTEP)
	how.flow.NewDst, how.flow.NewSrc = f.Hop.Dst, f.Hop.Src
	if how.rx != nil && how.tx != nil {
		return errTransit
	}
	if how.rx != nil {
		if err := o.received(f, how); err != nil {
			return err
		}
	} else {
		at, err := o.place(from)
		if err != nil {
			return err
		}
		how.need = need{at.index, datapath.PortIn}
		if at.kind == port.HookTAP {
			how.need.program = datapath.PortOut
		}
		how.key = datapath.OutKey{Ifindex: uint32(at.index), Dst: f.Dst, Src: f.Src, Tag: f.Tag, Tuple: f.Tuple}
	}
	if how.tx != nil {
		return o.sent(f, how)
	}
	at, err := o.place(to)
	if err != nil {
		return err
	}
	how.flow.Oif, how.flow.Tag = uint32(at.index), f.OutTag
	how.flow.Max = uint32(f.Out.MTU(0)) // which place has read again: f.MTU may be old
	switch at.kind {
	case port.HookTAP:
		how.flow.How = datapath.Ingress
	case port.HookInterface:
		how.flow.How = datapath.Egress
	default:
		how.flow.How = datapath.Peer
	}
	return nil
}

// A round has what was asked of ports and underlays since it began: they answer by system calls.
type round struct {
	places   map[*port.Device]place
	sendings map[sockets]underlay.Sending
}

// sockets is a set of transmit sockets.
type sockets struct {
	of     *underlay.UDP
	number uint8
}

func newRound() round { return round{map[*port.Device]place{}, map[sockets]underlay.Sending{}} }

// A place is where the frames of a port come by.
type place struct {
	kind  port.HookKind
	index int
	err   error
}

// place asks for the device of a port, once in a round.
func (o *Offload) place(x any) (place, error) {
	d, ok := x.(*port.Device)
	if !ok {
		return place{}, errPort
	}
	at, known := o.round.places[d]
	if !known {
		h, err := d.Hook()
		if err == nil && h.Namespace == o.home.id && o.routes.use(h.Index) {
			h, err = d.Hook() // from now on changes are told
		}
		switch {
		case err != nil:
			at.err = errPort
		case h.Namespace != o.home.id:
			at.err = errNamespace
		default:
			at.kind, at.index = h.Kind, h.Index
		}
		o.round.places[d] = at
	}
	return at, at.err
}

// path asks the VTEP how frames travel to and from a peer, and its underlay how it sends.
func (o *Offload) path(v *vtep.VTEP, peer uint16, tag uint32) (p vtep.Path, s underlay.Sending, err error) {
	o.watch(v)
	if p, err = v.Path(peer, tag); err != nil {
		return p, s, err
	}
	u, ok := inside(p.Underlay).(*underlay.UDP)
	if !ok || p.Local.Addr().IsUnspecified() || p.Local.Addr().Zone() != "" || p.Peer.Addr().Zone() != "" {
		return p, s, errUnderlay
	}
	set := sockets{u, p.Header.Sockets}
	s, ok = o.round.sendings[set]
	if !ok {
		s, _ = u.Sending(set.number)
		o.round.sendings[set] = s
	}
	switch {
	case len(s.SrcPorts) == 0:
		return p, s, errUnderlay
	case s.Namespace != o.home.id:
		return p, s, errNamespace
	}
	return p, s, nil
}

// received plans for frames of a peer.
func (o *Offload) received(f *vswitch.Flow, how *plan) error {
	p, s, err := o.path(how.rx, f.From.Peer(), f.Tag)
	if err != nil {
		return err
	}
	if !p.Heard {
		return errPeers
	}
	if p.DSCP != vtep.DSCPKeep {
		return errMarking
	}
	dev, err := o.device(p, s, how)
	if err != nil {
		return err
	}
	how.key = datapath.InKey{Peer: p.Peer.Addr().As16(), VNI: frame.VNI(f.Tag), Dst: f.Dst, Src: f.Src, Tuple: f.Tuple}
	how.flow.Outer = datapath.Outer{Local: p.Local.Addr(), Port: p.Local.Port(), GPE: p.Type == encap.TypeGPE, ZeroChecksum: s.ZeroSum, Unverified: o.cfg.Unverified}
	if s.Device != "" {
		how.flow.Outer.Iif = uint32(dev.index) // or the device of a VRF's that the way goes by
	}
	how.need = need{dev.index, datapath.TunnelIn}
	return nil
}

// sent plans for frames to a peer.
func (o *Offload) sent(f *vswitch.Flow, how *plan) error {
	p, s, err := o.path(how.tx, f.To.Peer(), f.OutTag)
	if err != nil {
		return err
	}
	switch {
	case !s.NoSum:
		return errChecksum
	case p.SymmetricHash:
		return errHash
	}
	dev, err := o.device(p, s, how)
	if err != nil {
		return err
	}
	x := datapath.Outer{Local: p.Local.Addr(), Remote: p.Peer.Addr(), Port: p.Peer.Port(), VNI: p.VNI, GPE: p.Type == encap.TypeGPE, Mark: s.Mark}
	for i := range x.SrcPorts {
		x.SrcPorts[i] = s.SrcPorts[i*len(s.SrcPorts)/len(x.SrcPorts)]
	}
	h := p.Header
	if h.TTL != vtep.Inherit {
		x.TTL = uint8(h.TTL)
	}
	switch h.TOS {
	case vtep.Inherit:
		x.TOSIn = true
	case vtep.TOSZero:
	case vtep.FromPriority:
		return errMarking
	default:
		x.TOS = uint8(h.TOS)
	}
	switch h.DF {
	case vtep.DFUnset:
		x.DF = datapath.DFUnset
	case vtep.DFInherit:
		x.DF = datapath.DFInherit
	}
	switch h.ECN {
	case vtep.ECNCompat:
		x.ECN = datapath.ECNCompat
	case vtep.ECNRFC3168:
		x.ECN = datapath.ECNRFC3168
	}
	how.flow.How, how.flow.Oif, how.flow.Outer = datapath.Neigh, uint32(dev.index), x
	// A longer frame is for user space, which tells its sender: the device may have another MTU than when the tunnel was opened.
	how.flow.Max = uint32(max(min(f.MTU, p.MTU, dev.mtu-p.Type.Outer(p.Peer.Addr().Is6())), 0))
	return nil
}

// device returns the underlay's device on the way to a peer.
func (o *Offload) device(p vtep.Path, s underlay.Sending, how *plan) (exit, error) {
	how.via = way{local: p.Local.Addr(), peer: p.Peer.Addr(), mark: s.Mark, device: s.Device}
	x := o.routes.to(how.via)
	switch {
	case o.routes.ipsec:
		return x, errIPsec
	case x == (exit{}):
		return x, errRoute
	}
	return x, nil
}
