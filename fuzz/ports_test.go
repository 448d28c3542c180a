package fuzz

import (
	"bytes"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

const (
	tunPort = 3 // its frames are bare IP packets
	farPort = 4 // the VTEP
	noPort  = -1
)

// A localPort is a port whose input is a feed and whose output is looked at and counted.
type localPort struct {
	*feed
	r    *rig
	id   int
	mtu  int
	full bool // takes nothing at the moment

	entered uint64
	got     atomic.Uint64 // workers write at once
}

func (p *localPort) Name() string             { return portName(p.id) }
func (p *localPort) Readers() []frame.Reader  { return []frame.Reader{p.feed} }
func (p *localPort) Writer(int) frame.Writer  { return p }
func (p *localPort) Offloads() frame.Offloads { return frame.OffloadAll }
func (p *localPort) MTU(uint16) int           { return p.mtu }

func (p *localPort) Write(out []frame.Out) error {
	for i := range out {
		o := &out[i]
		p.r.emitted.Add(1)
		switch bare := o.F.Kind != frame.Ethernet; {
		case p.full:
			o.Drop = frame.PortFull
		case bare != (p.id == tunPort):
			o.Drop = frame.BadKind
		case o.F.SegLen() > p.mtu:
			o.Drop = frame.TooBig
		default:
			p.got.Add(1)
			p.r.record(p.id, onPort(o.Tag, o.F.Bytes()))
		}
		p.r.left(leaving{port: p.id, tag: o.Tag, kind: o.F.Kind, data: o.F.Bytes()})
	}
	return nil
}

// record keeps for the model what leaves.
func (r *rig) record(port int, what string) {
	if r.g != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.out[port] = append(r.out[port], what)
	}
}

// An underlay is likewise one; of a VTEP for IP it hands out packets without a header.
type underlay struct {
	*feed
	r    *rig
	mtu  int
	full bool

	own         netip.AddrPort
	moved       bool // there was another before it
	path        func(frame.Endpoint, int, []byte)
	unreachable func(frame.Endpoint, []byte)
	entered     uint64
	joined      map[netip.Addr]bool // multicast groups
}

func (u *underlay) Readers() []frame.Reader                     { return []frame.Reader{u.feed} }
func (u *underlay) Sender(int) frame.Sender                     { return u }
func (u *underlay) MTU() int                                    { return u.mtu }
func (u *underlay) PathMTU(f func(frame.Endpoint, int, []byte)) { u.path = f }
func (u *underlay) Unreachable(f func(frame.Endpoint, []byte))  { u.unreachable = f }
func (u *underlay) Superframes(func([]byte) bool)               {}

// LocalAddr is without a port where there is no UDP.
func (u *underlay) LocalAddr() netip.AddrPort {
	if u.r.set.tunnel.Type == encap.TypeIPIP {
		return netip.AddrPortFrom(u.own.Addr(), 0)
	}
	return u.own
}

func (u *underlay) Join(group netip.Addr) error {
	if u.joined[group] {
		u.r.errorf("joined %v twice", group)
	}
	u.joined[group] = true
	return nil
}

func (u *underlay) Leave(group netip.Addr) error {
	if !u.joined[group] {
		u.r.errorf("left %v, which was not joined", group)
	}
	delete(u.joined, group)
	return nil
}

func (u *underlay) Send(ds []frame.Datagram) error {
	for i := range ds {
		d := &ds[i]
		b := bytes.Join(d.Parts, nil)
		size := len(b)
		if d.Seg != 0 {
			size = int(d.Seg)
		}
		if size == 0 || len(d.To) == 0 {
			u.r.errorf("a datagram of %d bytes to %d", len(b), len(d.To))
			continue
		}
		for k, to := range d.To {
			// A peer by itself that has the address since a move is the user's business.
			self := to.AddrPort().Addr() == u.LocalAddr().Addr() && (len(d.To) > 1 || !u.moved)
			if to.Is4() != u.own.Addr().Is4() || self {
				u.r.errorf("a datagram to %v", to)
			}
			for _, other := range d.To[:k] {
				if to == other {
					u.r.errorf("two copies to %v", to)
				}
			}
			u.r.emitted.Add(int64((len(b) + size - 1) / size))
			for p := range slices.Chunk(b, size) {
				u.r.record(farPort, onWire(to.AddrPort().Addr(), p))
				u.r.onward(datagram{u.own, to.AddrPort().Addr(), p})
			}
		}
		for ; len(b) > 0; b = b[min(size, len(b)):] {
			u.r.sent(b[:min(size, len(b))], d)
		}
		if u.full {
			d.Lost, d.Drop = uint16(len(d.To)), frame.PortFull
		}
	}
	return nil
}
