package fuzz

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// An entering is a frame on its way in: as the segment sees it, if it is in one.
type entering struct {
	port int
	from frame.Endpoint // of the underlay
	data []byte
	kind frame.Kind
	seg  int // -1: in none
}

// enter notes a frame, by the rules of its port.
func (r *rig) enter(e entering) {
	e.seg = -1
	tag := uint32(0)
	switch b := e.data; {
	case e.port == noPort:
		for i := range r.segs { // any
			e.seg = i
		}
	case e.port == farPort:
		if r.set.tunnel.Type == encap.TypeIPIP || len(b) < encap.VXLANLen {
			break
		}
		tag, e.data = binary.BigEndian.Uint32(b[4:])>>8, b[encap.VXLANLen:]
		e.seg = slices.Index(r.vnis[:], frame.VNI(tag))
	case e.port != tunPort:
		if len(b) >= 18 && binary.BigEndian.Uint16(b[12:]) == 0x8100 {
			tag = uint32(binary.BigEndian.Uint16(b[14:]) & 0xfff)
			e.data = append(slices.Clone(b[:12]), b[16:]...)
		}
		e.seg = slices.IndexFunc(vlans[:], func(v [3]uint32) bool { return v[e.port] == tag })
	}
	e.data = slices.Clone(e.data)
	r.mu.Lock()
	r.entered = append(r.entered, e)
	r.mu.Unlock()
}

// A leaving is a frame on its way out.
type leaving struct {
	port int
	to   []frame.Endpoint
	tag  uint32
	kind frame.Kind
	data []byte
}

// left looks at a frame that leaves. The switch holds it, and r.mu is not held.
func (r *rig) left(o leaving) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wellFormed(&o)
	if o.kind != frame.Ethernet {
		if r.toIP == nil {
			r.errorf("a packet of IP leaves, and nobody routes")
		}
		return
	}
	seg := -1
	switch {
	case o.port == farPort && o.tag == farVNI:
		return // to a next hop that numbers networks its own way
	case o.port == farPort:
		seg = slices.Index(r.vnis[:], frame.VNI(o.tag))
	case o.port < tunPort:
		seg = slices.IndexFunc(vlans[:], func(v [3]uint32) bool { return v[o.port] == o.tag })
	}
	if seg < 0 {
		r.errorf("a frame leaves port %d with tag %d", o.port, o.tag)
		return
	}
	if r.set.routes() {
		return // what a gateway routes is its own
	}
	came, why := false, ""
	for i := range r.entered {
		if e := &r.entered[i]; bytes.Equal(e.data, o.data) {
			came = true
			if why = r.forbids(e, &o, seg); why == "" {
				return
			}
		}
	}
	if came {
		r.errorf("%s: % x", why, o.data)
	}
}

// forbids says why a frame that has not been changed may not leave, if it may not.
func (r *rig) forbids(e *entering, o *leaving, seg int) string {
	switch {
	case e.port == noPort:
		return ""
	case e.seg != seg:
		return "from one segment into another"
	case r.segs[seg] == nil || r.segs[seg].at[o.port] == nil:
		return "out of a port that is not attached"
	}
	in, out := &r.segs[seg].cfg[e.port], &r.segs[seg].cfg[o.port]
	if e.port == o.port {
		switch {
		case !in.Hub:
			return "back to where it came from"
		case slices.ContainsFunc(o.to, func(x frame.Endpoint) bool { return x.Host() == e.from.Host() }):
			return "back to the peer it came from"
		}
		return ""
	}
	if why := passes(e, in, out); why != "" {
		return why
	}
	if g := group(in, e.port); g != 0 && g == group(out, o.port) {
		return "across a split horizon"
	}
	return ""
}

// passes says which role a frame from in to out has passed by.
func passes(e *entering, in, out *vswitch.AttachConfig) string {
	switch r := out.Role; {
	case blocked(in) || blocked(out):
		return "by a link that is blocked"
	case r == nil || e.port != farPort || len(e.data) < 6 || frame.MAC(e.data) != frame.Broadcast:
	case r.NoFlood || slices.Contains(r.Shared, e.from.AddrPort().Addr()):
		return "to an Ethernet segment for which others forward"
	}
	return ""
}

func group(c *vswitch.AttachConfig, port int) uint8 {
	if port == farPort && c.Group == 0 && !c.Hub {
		return vswitch.GroupTunnel
	}
	return c.Group
}

// sent looks at a datagram; a tunnel's header is read here by nobody who writes it.
func (r *rig) sent(b []byte, d *frame.Datagram) {
	o := leaving{port: farPort, to: d.To, tag: uint32(ipVNI), kind: frame.IPv4}
	over := 28
	switch r.set.tunnel.Type {
	case encap.TypeIPIP:
		over, o.data = 20, b
	case encap.TypeGPE:
		if len(b) < 8 || b[0]&^2 != 0x0c || b[1]|b[2]|b[7] != 0 || b[3] < 1 || b[3] > 3 {
			r.errorf("header % x", b[:min(8, len(b))])
			return
		}
		o.kind, o.tag, o.data = [...]frame.Kind{1: frame.IPv4, 2: frame.IPv6, 3: frame.Ethernet}[b[3]], binary.BigEndian.Uint32(b[4:])>>8, b[8:]
	default:
		if h, drop := encap.ParseVXLAN(b); drop != frame.NotDropped || uint64(h)&^encap.TypeVXLAN.Used(r.set.tunnel.GBP) != 0 ||
			h&encap.GBPMask != 0 && h&encap.FlagGBP == 0 {
			r.errorf("header % x", b[:min(8, len(b))])
			return
		}
		o.kind, o.tag, o.data = frame.Ethernet, binary.BigEndian.Uint32(b[4:])>>8, b[8:]
	}
	if len(b)+over > r.set.underMTU && !r.answers(len(o.data)) {
		r.errorf("a datagram of %d bytes, MTU %d: % x", len(b)+over, r.set.underMTU, b)
	}
	if len(o.data) > 0 && o.kind != frame.Ethernet && o.data[0]>>4 == 6 {
		o.kind = frame.IPv6
	}
	r.left(o)
}

// answers reports whether a frame of n bytes may be the answer to one from the network, which
// is sent back whatever its length; an error is longer than what it is about.
func (r *rig) answers(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.entered, func(e entering) bool { return e.port == farPort && len(e.data)+48 >= n })
}

// wellFormed is what every frame is that leaves; gopacket reads those of gateways.
func (r *rig) wellFormed(o *leaving) {
	first := layers.LayerTypeIPv4
	switch o.kind {
	case frame.Ethernet:
		if len(o.data) < 14 {
			r.errorf("a frame of %d bytes", len(o.data))
			return
		}
		src := frame.MAC(o.data[6:])
		if src.IsGroup() || src.IsZero() {
			r.errorf("a frame from %v", src)
		}
		if src != hostMAC(14) && src != hostMAC(15) || !r.set.routes() {
			return
		}
		first = layers.LayerTypeEthernet
	case frame.IPv6:
		first = layers.LayerTypeIPv6
	}
	if first == layers.LayerTypeEthernet && r.claimed() {
		return // a host has used the gateway's MAC
	}
	p := gopacket.NewPacket(o.data, first, gopacket.DecodeOptions{NoCopy: true, Lazy: true})
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		if wire.Fold(wire.Sum(ip.Contents, 0)) != 0xffff || ip.TTL == 0 || int(ip.Length) > len(o.data) {
			r.errorf("port %d: % x", o.port, o.data)
		}
	case *layers.IPv6:
		if ip.HopLimit == 0 || int(ip.Length)+40 > len(o.data) {
			r.errorf("port %d: % x", o.port, o.data)
		}
	default:
		if p.Layer(layers.LayerTypeARP) == nil {
			r.errorf("port %d: no IP: % x", o.port, o.data)
		}
	}
}

// claimed reports whether one of the frames that entered is from a gateway's MAC.
func (r *rig) claimed() bool {
	return slices.ContainsFunc(r.entered, func(e entering) bool {
		return len(e.data) >= 12 && (frame.MAC(e.data[6:]) == hostMAC(14) || frame.MAC(e.data[6:]) == hostMAC(15))
	})
}
