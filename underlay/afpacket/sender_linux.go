package afpacket

import (
	"encoding/binary"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A sender is the scratch memory of one worker for the shared transmit socket. It builds a frame for each copy
// of a datagram, or for each piece of a run, in order, and sends up to datagrams.Chunk with one sendmmsg.
type sender struct {
	p    *Underlay
	call func(fd uintptr) // transmit, made once

	datagrams.Ledger
	down error          // the underlay is closed or broken
	hop  *hop           // of the previous endpoint
	all  hop            // stands for the hop of a multicast group
	to   frame.Endpoint // host of the previous endpoint

	i      uint8 // the current datagram
	k      int32 // and its copy
	set    *set
	proto  uint8
	paySum uint64 // sum of the payload of datagram i, which is no run
	paid   bool   // paySum is known

	out, single outbox
}

// An outbox holds frames for the kernel.
type outbox struct {
	datagrams.Outbox
	heads [datagrams.Chunk][gso.VirtioLen + headLen]byte
}

// headLen is the longest headers: Ethernet with a tag, IPv6 and UDP.
const headLen = wire.EthernetLen + wire.VLANLen + wire.IPv6Len + wire.UDPLen

func newSender(p *Underlay) *sender {
	s := &sender{p: p}
	s.call = s.transmit
	s.out.Outbox, s.single.Outbox = datagrams.NewOutbox(), datagrams.NewOutbox()
	return s
}

// Send implements [frame.Sender]. It returns net.ErrClosed after Close, and an error with the name of the
// interface after that is deleted.
//
// A run is sent as frames of up to 64 datagrams, which the kernel or the network card cuts. If one of its
// datagrams is lost, the copy is. Endpoints of the other address family, and those off the link without a
// Gateway, are lost as Unreachable, with IP-in-IP payloads that are not IP packets as BadHeader. While a MAC is
// unknown, all but the first few packets are lost as Unresolved.
func (s *sender) Send(ds []frame.Datagram) error {
	s.down = nil
	s.Ledger.Send(ds, s.window)
	s.hop = nil
	return s.down
}

func (s *sender) window() {
	if s.p.dev.Closed() {
		s.down = net.ErrClosed
		for i := range s.Window {
			s.Window[i].Lost = 0
			s.LoseAll(uint8(i), frame.PortDown)
		}
		return
	}
	for i := range s.Window {
		s.datagram(uint8(i))
	}
	s.flush()
}

// datagram builds all copies of datagram i.
func (s *sender) datagram(i uint8) {
	d := &s.Window[i]
	d.Lost, d.Drop = 0, frame.NotDropped
	s.i, s.paid = i, false
	if s.set = s.p.sets.Get(d.Set); s.set == nil {
		s.LoseAll(i, frame.SendFailed)
		return
	}
	if s.proto = wire.ProtoUDP; s.p.raw && !s.carries(d) {
		s.LoseAll(i, frame.BadHeader)
		return
	}
	n, seg := datagrams.Size(d), int(d.Seg)
	if seg == 0 || seg > n {
		seg = n
	}
	mtu := s.p.MTU()
	long := seg+s.p.udp+s.ipLen() > mtu
	per := s.perFrame(d, n, seg)
	for k := range d.To {
		s.k = int32(k)
		switch {
		case d.To[k].Is4() != s.p.is4, d.To[k].Port == 0 && !s.p.raw:
			s.loseCopy(frame.Unreachable, n, seg)
		case long:
			s.loseCopy(frame.TooBig, n, seg)
			if f := s.p.pathMTU.Load(); f != nil {
				(*f)(d.To[k], mtu, nil)
			}
		default:
			s.copy(d, &d.To[k], n, seg, per)
		}
	}
}

// carries finds the protocol that carries a packet. It returns false if that is not an IP packet.
func (s *sender) carries(d *frame.Datagram) bool {
	switch datagrams.Protocol(d.Parts) {
	case datagrams.Carries4:
		s.proto = wire.ProtoIPv4
	case datagrams.Carries6:
		s.proto = wire.ProtoIPv6
	default:
		return false
	}
	return true
}

// perFrame returns the number of datagrams in each frame of a run of n bytes.
func (s *sender) perFrame(d *frame.Datagram, n, seg int) int {
	if n == seg || !s.set.runs || !s.p.runs || len(d.Parts) >= datagrams.MaxIov {
		return 1
	}
	return max(1, min(datagrams.MaxSegs, (datagrams.MaxPacket-datagrams.UDPHeaders(s.p.is4))/seg))
}

// copy builds the copy of a datagram to one endpoint: frames of per datagrams each.
func (s *sender) copy(d *frame.Datagram, to *frame.Endpoint, n, seg, per int) {
	h, why := s.nextHop(to)
	if why != frame.NotDropped {
		s.loseCopy(why, n, seg)
		return
	}
	off, mac := 0, h.mac.Load()
	if mac == 0 {
		if off = s.wait(h, d, to, n, seg); off >= max(n, 1) {
			return
		}
		if mac = h.mac.Load(); mac == 0 {
			why := frame.Unresolved
			if s.p.dev.Closed() {
				why, s.down = frame.PortDown, net.ErrClosed
			}
			s.loseCopy(why, n-off, seg)
			return
		}
	}
	if !h.used.Load() {
		h.used.Store(true)
	}
	c := datagrams.At(d.Parts, 0)
	c.Skip(off)
	for {
		size := min(n-off, per*seg)
		s.add(&s.out, frame.MACFrom(mac), d, to, &c, off, size, seg)
		if off += size; off >= n {
			return
		}
	}
}

// nextHop returns the next hop to an endpoint, or why there is none.
func (s *sender) nextHop(to *frame.Endpoint) (*hop, frame.Reason) {
	if s.hop != nil && to.IP == s.to.IP && to.Scope == s.to.Scope && !s.hop.gone.Load() {
		return s.hop, 0
	}
	p := s.p
	local := to.IsLinkLocal()
	switch {
	case to.Scope != 0 && to.Scope != uint32(p.dev.Index) && (local || to.IsMulticast()):
		return nil, frame.Unreachable
	case to.IsMulticast():
		s.all.mac.Store(neighbour.GroupMAC(to.IP).Uint64() | hopResolved)
		s.hop, s.to = &s.all, to.Host()
		return s.hop, 0
	case to.IP == p.messenger.ip, !isSource(to):
		return nil, frame.Unreachable
	}
	ip := hopKey(to.IP)
	a, b := binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:])
	if !local && (a&p.mask[0] != p.near[0] || b&p.mask[1] != p.near[1]) {
		if ip = p.via; ip == (hopKey{}) {
			return nil, frame.Unreachable
		}
	}
	h, ok := p.hops.byIP.Load(ip)
	if !ok {
		if h = p.hops.find(ip, time.Now()); h == nil {
			return nil, frame.Unresolved
		}
	}
	s.hop, s.to = h, to.Host()
	return h, 0
}

// wait lets the datagrams of a copy wait for the next hop, as far as there is room, each with its checksum. It
// returns the bytes that wait, at least 1 for an empty datagram. It stops if the MAC comes meanwhile.
func (s *sender) wait(h *hop, d *frame.Datagram, to *frame.Endpoint, n, seg int) (off int) {
	s.p.hops.use(h)
	for {
		size := min(n-off, seg)
		if h.full() || !s.p.hops.hold(h, s.waiting(d, to, off, size)) {
			return off
		}
		if off += max(size, 1); off >= n {
			return off
		}
	}
}

// waiting returns a frame of bytes [off, off+size) of the payload.
func (s *sender) waiting(d *frame.Datagram, to *frame.Endpoint, off, size int) []byte {
	at := s.p.eth + s.ipLen()
	b := make([]byte, at+s.p.udp, at+s.p.udp+size)
	for c := datagrams.At(d.Parts, off); size > 0; {
		part := c.Next(size)
		b = append(b, part...)
		size -= len(part)
	}
	payload := b[at+s.p.udp:]
	s.headers(b, frame.MAC{}, d, to, len(payload))
	if s.set.sum {
		s.setSum(b[at:], s.pseudo(b, len(payload)), wire.Sum(payload, 0))
	}
	return b
}

func (s *sender) ipLen() int { return datagrams.IPHeader(s.p.is4) }

// add builds a frame of the next size bytes at c, to be cut into pieces of seg if that is less.
func (s *sender) add(t *outbox, mac frame.MAC, d *frame.Datagram, to *frame.Endpoint, c *datagrams.Cursor, off, size, seg int) {
	if t == &s.out && !t.Fits(len(d.Parts)+1) {
		s.flush()
	}
	who := datagrams.Copy{D: s.i, Segs: 1, To: s.k, Off: int32(off)}
	if size > seg {
		who.Segs, who.Seg = int32((size+seg-1)/seg), d.Seg
	}
	head := t.heads[t.N][:]
	p := s.p
	at := p.eth + s.ipLen()
	b := head[p.head : p.head+at+p.udp]
	first := len(t.IOV)
	t.IOV = append(t.IOV, unix.Iovec{Base: &head[0]})
	t.IOV[first].SetLen(p.head + len(b))
	iov, took := t.Take(first, c, size, 0)
	if took < size {
		c.Skip(size)
		s.Lose(who, frame.SendFailed)
		return
	}
	s.headers(b, mac, d, to, size)
	v := (*gso.Virtio)(head)
	switch {
	case p.head == 0 && s.set.sum:
		s.setSum(b[at:], s.pseudo(b, size), s.payload(iov[1:], d, size))
	case p.head > 0 && (s.set.sum || who.Segs > 1):
		wire.UDP(b[at:]).SetChecksum(wire.Fold(s.pseudo(b, size)))
		g := frame.GSO{Flags: frame.NeedsCsum, Size: who.Seg, CsumStart: uint16(at), CsumOffset: wire.UDPChecksum, DataStart: uint16(at + wire.UDPLen)}
		if who.Seg > 0 {
			g.Type = frame.GSOUDP
		}
		v.Put(g)
	case p.head > 0:
		*v = gso.Virtio{}
	}
	t.Put(iov, who)
}
