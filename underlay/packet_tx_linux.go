package underlay

import (
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A packetSender is one worker's scratch over the shared transmit socket. It builds one frame
// for each copy of a datagram, or for each piece of a run, in the order of the datagrams, and
// sends them by sendmmsg, at most chunk at a time.
type packetSender struct {
	p    *Packet
	call func(fd uintptr) // transmit, made once

	at   *packetPlace     // while something is sent
	win  []frame.Datagram // the window in hand
	down error            // the underlay was closed, or broken, under us
	last copyOf           // the copy that was lost last
	hop  *hop             // of the endpoint before
	all  hop              // in its place, of a multicast group
	to   frame.Endpoint   // its host

	i      uint8 // the datagram in hand
	k      int32 // its copy
	set    *packetSet
	paySum uint64 // of the payload of datagram i, which is alone
	paid   bool   // it is known

	out, apart packetBatch

	sum   datagrams.Sum // of one Send
	count datagrams.Tx
}

// A packetBatch is frames on their way to the kernel.
type packetBatch struct {
	n     int
	msgs  [chunk]sys.Mmsghdr
	heads [chunk][vnetLen + packetHead]byte
	who   [chunk]packetCopy
	iov   []unix.Iovec // of capacity allIov, which it never outgrows
}

// A packetCopy says what a message carries: a copy of a datagram, or a piece of one.
type packetCopy struct {
	copyOf
	off int32 // of the piece in the payload
}

// packetHead is the longest headers: Ethernet, IPv6 and UDP.
const packetHead = wire.EthernetLen + wire.IPv6Len + wire.UDPLen

func newPacketSender(p *Packet) *packetSender {
	s := &packetSender{p: p}
	s.call = s.transmit
	s.out.iov = make([]unix.Iovec, 0, allIov)
	s.apart.iov = make([]unix.Iovec, 0, allIov)
	return s
}

// Send implements [frame.Sender]. It returns net.ErrClosed after Close, and an error that
// names the interface when that is gone.
//
// A run leaves as frames of up to 64 datagrams each, which the kernel or the network card
// cuts. A copy of a run is lost when any of its datagrams is. An endpoint of the other address
// family, or off the link without a Gateway, is lost as Unreachable, one whose MAC is not known
// yet, but for the first few packets, as Unresolved.
func (s *packetSender) Send(ds []frame.Datagram) error {
	s.down, s.at = nil, s.p.place.Load()
	for len(ds) > 0 {
		n := min(window, len(ds))
		s.win, s.last = ds[:n:n], copyOf{to: -1}
		for i := range s.win {
			s.datagram(uint8(i))
		}
		s.flush()
		ds = ds[n:]
	}
	s.win, s.hop, s.at = nil, nil, nil
	s.count.Add(&s.sum)
	return s.down
}

// datagram builds all copies of datagram i.
func (s *packetSender) datagram(i uint8) {
	d := &s.win[i]
	d.Lost, d.Drop = 0, frame.NotDropped
	s.i, s.paid = i, false
	if s.set = s.p.sets.Get(d.Set); s.set == nil {
		s.loseAll(frame.SendFailed)
		return
	}
	n, seg := datagrams.Size(d), int(d.Seg)
	if seg == 0 || seg > n {
		seg = n
	}
	mtu := s.p.MTU()
	long := seg+datagrams.UDPHeaders(s.p.is4) > mtu
	per := s.perFrame(d, n, seg)
	for k := range d.To {
		s.k = int32(k)
		switch {
		case d.To[k].Is4() != s.p.is4, d.To[k].Port == 0:
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

// perFrame returns how many datagrams of a run of n bytes one frame carries, 1 when the kernel
// is not to cut runs.
func (s *packetSender) perFrame(d *frame.Datagram, n, seg int) int {
	if n == seg || !s.set.runs || !s.p.runs.Load() || len(d.Parts) >= maxIov {
		return 1
	}
	return max(1, min(maxSegs, (maxPacket-datagrams.UDPHeaders(s.p.is4))/seg))
}

// copy builds the copy of a datagram to one endpoint: frames of per datagrams each.
func (s *packetSender) copy(d *frame.Datagram, to *frame.Endpoint, n, seg, per int) {
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
			s.loseCopy(frame.Unresolved, n-off, seg)
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

// nextHop returns who a packet to an endpoint is handed to, or why there is nobody.
func (s *packetSender) nextHop(to *frame.Endpoint) (*hop, frame.Reason) {
	if s.hop != nil && to.IP == s.to.IP && to.Scope == s.to.Scope && !s.hop.gone.Load() {
		return s.hop, 0
	}
	p := s.p
	local, at := to.IsLinkLocal(), s.at
	switch {
	case to.Scope != 0 && to.Scope != uint32(p.dev.Index) && (local || to.IsMulticast()):
		return nil, frame.Unreachable
	case to.IsMulticast():
		s.all.mac.Store(groupMAC(to.IP).Uint64() | hopResolved)
		s.hop, s.to = &s.all, to.Host()
		return s.hop, 0
	case to.IP == at.rules.ip, !isSource(to):
		return nil, frame.Unreachable
	}
	ip := hopKey(to.IP)
	a, b := binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:])
	if !local && (a&at.mask[0] != at.near[0] || b&at.mask[1] != at.near[1]) {
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

// wait has the datagrams of a copy, as many as there is room for, wait for the next hop, each
// copied and with a checksum of our making. It returns how far it got, at least 1 for what is
// empty; with a MAC to be had meanwhile there is no need to wait.
func (s *packetSender) wait(h *hop, d *frame.Datagram, to *frame.Endpoint, n, seg int) (off int) {
	s.p.hops.use(h)
	for {
		size := min(n-off, seg)
		if h.full.Load() || !s.p.hops.hold(h, s.waiting(d, to, off, size)) {
			return off
		}
		if off += max(size, 1); off >= n {
			return off
		}
	}
}

// waiting returns a frame of bytes [off, off+size) of the payload.
func (s *packetSender) waiting(d *frame.Datagram, to *frame.Endpoint, off, size int) []byte {
	at := s.ipLen() + wire.EthernetLen
	b := make([]byte, at+wire.UDPLen, at+wire.UDPLen+size)
	for c := datagrams.At(d.Parts, off); size > 0; {
		part := c.Next(size)
		b = append(b, part...)
		size -= len(part)
	}
	payload := b[at+wire.UDPLen:]
	s.headers(b, frame.MAC{}, d, to, len(payload))
	if s.set.sum {
		s.setSum(b[at:], s.pseudo(b, len(payload)), wire.Sum(payload, 0))
	}
	return b
}

func (s *packetSender) ipLen() int { return datagrams.IPHeader(s.p.is4) }

// add builds one frame of the size bytes of the payload that c is at, cut into pieces of seg
// if that is less, and moves c behind them.
func (s *packetSender) add(t *packetBatch, mac frame.MAC, d *frame.Datagram, to *frame.Endpoint, c *datagrams.Cursor, off, size, seg int) {
	if t == &s.out && (t.n == chunk || len(t.iov)+min(len(d.Parts)+1, maxIov) > allIov) {
		s.flush()
	}
	segs := 1
	if size > seg {
		segs = (size + seg - 1) / seg
	}
	who := packetCopy{copyOf{d: s.i, segs: int32(segs), to: s.k}, int32(off)}
	if segs > 1 {
		who.seg = d.Seg
	}
	head := t.heads[t.n][:]
	p := s.p
	at := wire.EthernetLen + s.ipLen()
	b := head[p.head : p.head+at+wire.UDPLen]
	first := len(t.iov)
	t.iov = append(t.iov, unix.Iovec{Base: &head[0]})
	t.iov[first].SetLen(p.head + len(b))
	from := *c
	if !t.take(c, size, first) {
		clear(t.iov[first:])
		t.iov = t.iov[:first]
		*c = from
		c.Skip(size)
		s.lose(who.copyOf, frame.SendFailed)
		return
	}
	s.headers(b, mac, d, to, size)
	v := (*vnet)(head)
	switch {
	case p.head == 0 && s.set.sum:
		s.setSum(b[at:], s.pseudo(b, size), s.payload(t.iov[first+1:], d, size))
	case p.head > 0 && (s.set.sum || segs > 1):
		wire.UDP(b[at:]).SetChecksum(wire.Fold(s.pseudo(b, size)))
		v.put(at, who.seg)
	case p.head > 0:
		*v = vnet{}
	}
	t.msgs[t.n].Hdr.Iov = &t.iov[first]
	t.msgs[t.n].Hdr.SetIovlen(len(t.iov) - first)
	t.who[t.n] = who
	t.n++
}

// take appends the next n bytes of c, and reports whether they are few enough pieces.
func (t *packetBatch) take(c *datagrams.Cursor, n, first int) bool {
	for n > 0 {
		if len(t.iov) == cap(t.iov) || len(t.iov)-first == maxIov {
			return false
		}
		part := c.Next(n)
		v := unix.Iovec{Base: unsafe.SliceData(part)}
		v.SetLen(len(part))
		t.iov = append(t.iov, v)
		n -= len(part)
	}
	return true
}
