package underlay

import (
	"encoding/binary"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A packetSender is one worker's scratch over the shared transmit socket. It builds one frame
// for each copy of a datagram, or for each piece of a run, in the order of the datagrams, and
// sends them by sendmmsg, at most chunk at a time.
type packetSender struct {
	p    *Packet
	call func(fd uintptr) // transmit, made once

	win  []frame.Datagram // the window in hand
	down error            // the underlay was closed, or broken, under us
	last copyOf           // the copy that was lost last
	hop  *hop             // of the endpoint before
	to   frame.Endpoint   // its host

	i      uint8 // the datagram in hand
	k      int32 // its copy
	set    *packetSet
	paySum uint64 // of the payload of datagram i, which is alone
	paid   bool   // it is known

	out, apart packetBatch

	sum   txSum // of one Send
	count txCounters
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
// family, off the link without a Gateway, or a multicast group is lost as Unreachable, one
// whose MAC is not known yet, but for the first few packets, as Unresolved.
func (s *packetSender) Send(ds []frame.Datagram) error {
	s.down = nil
	for len(ds) > 0 {
		n := min(window, len(ds))
		s.win, s.last = ds[:n:n], copyOf{to: -1}
		for i := range s.win {
			s.datagram(uint8(i))
		}
		s.flush()
		ds = ds[n:]
	}
	s.win, s.hop = nil, nil
	s.count.add(&s.sum)
	s.sum = txSum{}
	return s.down
}

// datagram builds all copies of datagram i.
func (s *packetSender) datagram(i uint8) {
	d := &s.win[i]
	d.Lost, d.Drop = 0, frame.NotDropped
	s.i, s.paid = i, false
	if d.Set >= maxSets || s.p.sets[d.Set].Load() == nil {
		s.loseAll(frame.SendFailed)
		return
	}
	s.set = s.p.sets[d.Set].Load()
	n, seg := size(d), int(d.Seg)
	if seg == 0 || seg > n {
		seg = n
	}
	mtu := s.p.MTU()
	long := seg+headers(s.p.rules.is4) > mtu
	per := s.perFrame(d, n, seg)
	for k := range d.To {
		s.k = int32(k)
		switch {
		case d.To[k].Is4() != s.p.rules.is4, d.To[k].Port == 0:
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
	return max(1, min(maxSegs, (maxPacket-headers(s.p.rules.is4))/seg))
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
	c := cursor{parts: d.Parts}
	c.skip(off)
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
	local := to.IsLinkLocal()
	if to.IsMulticast() || to.IP == p.rules.ip || !isSource(to) || local && to.Scope != 0 && to.Scope != uint32(p.index) {
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
	c := cursor{parts: d.Parts}
	for c.skip(off); size > 0; {
		part := c.parts[0][c.off:]
		k := min(len(part), size)
		b = append(b, part[:k]...)
		size -= k
		c.skip(k)
		if k == 0 { // an empty part
			c.parts, c.off = c.parts[1:], 0
		}
	}
	payload := b[at+wire.UDPLen:]
	s.headers(b, frame.MAC{}, d, to, len(payload))
	if s.set.sum {
		s.setSum(b[at:], s.pseudo(b, len(payload)), wire.Sum(payload, 0))
	}
	return b
}

func (s *packetSender) ipLen() int { return ipHeader(s.p.rules.is4) }

// add builds one frame of the size bytes of the payload that c is at, cut into pieces of seg
// if that is less, and moves c behind them.
func (s *packetSender) add(t *packetBatch, mac frame.MAC, d *frame.Datagram, to *frame.Endpoint, c *cursor, off, size, seg int) {
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
		c.skip(size)
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
func (t *packetBatch) take(c *cursor, n, first int) bool {
	for n > 0 {
		part := c.parts[0][c.off:]
		k := min(len(part), n)
		if k > 0 {
			if len(t.iov) == cap(t.iov) || len(t.iov)-first == maxIov {
				return false
			}
			v := unix.Iovec{Base: unsafe.SliceData(part)}
			v.SetLen(k)
			t.iov = append(t.iov, v)
		}
		n -= k
		if c.off += k; c.off == len(c.parts[0]) {
			c.parts, c.off = c.parts[1:], 0
		}
	}
	return true
}

// headers writes the headers of a frame with n bytes of payload, without UDP checksum, to b.
//
// A datagram without DF may be cut on its way, and needs an identification of its own (RFC
// 6864, section 4.3); of a run the one who cuts it counts on from there. The flow label is
// that of RFC 6438, section 3: never 0, one for each flow.
func (s *packetSender) headers(b []byte, mac frame.MAC, d *frame.Datagram, to *frame.Endpoint, n int) {
	p := s.p
	copy(b, mac[:])
	copy(b[6:], p.rules.mac[:])
	ttl := d.TTL
	if ttl == 0 {
		ttl = uint8(p.cfg.TTL)
	}
	ip, length := b[wire.EthernetLen:], wire.UDPLen+n
	if p.rules.is4 {
		b[12], b[13] = wire.TypeIPv4>>8, wire.TypeIPv4&0xff
		h := wire.IPv4Header{
			TOS: d.TOS, TTL: ttl, Protocol: wire.ProtoUDP, DF: d.DF, TotalLen: uint16(wire.IPv4Len + length),
			Src: [4]byte(p.rules.ip[12:]), Dst: [4]byte(to.IP[12:]),
		}
		if !d.DF {
			h.ID = uint16(p.id.Add(maxSegs))
		}
		h.Put(ip)
		ip = ip[wire.IPv4Len:]
	} else {
		b[12], b[13] = wire.TypeIPv6>>8, wire.TypeIPv6&0xff
		h := wire.IPv6Header{NextHeader: wire.ProtoUDP, HopLimit: ttl, PayloadLen: uint16(length), Src: p.rules.ip, Dst: to.IP}
		h.Put(ip)
		binary.BigEndian.PutUint32(ip, 6<<28|uint32(d.TOS)<<20|1<<16|uint32(d.Flow))
		ip = ip[wire.IPv6Len:]
	}
	binary.BigEndian.PutUint16(ip, s.set.lo+uint16(uint32(d.Flow)%s.set.n))
	binary.BigEndian.PutUint16(ip[2:], to.Port)
	binary.BigEndian.PutUint16(ip[4:], uint16(length))
	ip[6], ip[7] = 0, 0
}

// pseudo is the sum of the pseudo header of a frame's datagram.
func (s *packetSender) pseudo(b []byte, n int) uint64 {
	if s.p.rules.is4 {
		return wire.Pseudo4(b[wire.EthernetLen:], wire.ProtoUDP, wire.UDPLen+n)
	}
	return wire.Pseudo6(b[wire.EthernetLen:], wire.ProtoUDP, wire.UDPLen+n)
}

// setSum completes the checksum of a UDP header.
func (s *packetSender) setSum(u wire.UDP, pseudo, payload uint64) {
	c := wire.Checksum(wire.Sum(u[:wire.UDPLen], pseudo+uint64(wire.Fold(payload))))
	if c == 0 {
		c = 0xffff // 0 means that there is none (RFC 768)
	}
	u.SetChecksum(c)
}

// payload is the sum of a payload in pieces; that of a lone datagram is taken once for all
// its copies.
func (s *packetSender) payload(iov []unix.Iovec, d *frame.Datagram, n int) (sum uint64) {
	lone := d.Seg == 0
	if lone && s.paid {
		return s.paySum
	}
	odd := false
	for _, v := range iov {
		part := uint64(wire.Fold(wire.Sum(unsafe.Slice(v.Base, int(v.Len)), 0)))
		if odd { // RFC 1071, section 2(B)
			part = part>>8 | part&0xff<<8
		}
		sum += part
		odd = odd != (v.Len&1 == 1)
	}
	s.paid, s.paySum = lone, sum
	return sum
}

// flush sends the frames built so far and forgets them.
func (s *packetSender) flush() {
	if s.out.n > 0 {
		// Control, not Write: it holds the descriptor open as well, and does not
		// make the senders wait for each other.
		if err := s.p.send.Conn.Control(s.call); err != nil {
			s.down = net.ErrClosed
			for _, c := range s.out.who[:s.out.n] {
				s.lose(c.copyOf, frame.PortDown)
			}
		}
	}
	s.out.clear()
}

// clear forgets what was built: the frames are not ours any more.
func (t *packetBatch) clear() {
	clear(t.iov)
	t.n, t.iov = 0, t.iov[:0]
}

func (s *packetSender) transmit(fd uintptr) { s.push(fd, &s.out) }

// push sends frames. When one is refused it goes on with the next: each costs its own copy
// only. A run that is refused as such is sent again as single datagrams.
func (s *packetSender) push(fd uintptr, t *packetBatch) {
	for off := 0; off < t.n; {
		n, errno := s.p.sendmmsg(fd, t.msgs[off:t.n], unix.MSG_DONTWAIT)
		s.sum.calls++
		switch {
		case errno == unix.EINTR:
			continue
		case errno == 0:
			for i := range t.who[off : off+n] {
				s.sum.one(int(t.who[off+i].segs))
			}
			off += n
			continue
		case t.who[off].segs > 1 && refused(errno):
			s.cutApart(fd, &t.who[off])
			off++
			continue
		case errno == unix.ENXIO && s.down == nil:
			s.down = s.p.ended(errno)
		}
		why := packetVerdict(errno)
		s.lose(t.who[off].copyOf, why)
		off++
		if errno == unix.EAGAIN {
			// The socket's buffer is full: no room for the rest either.
			for ; off < t.n; off++ {
				s.lose(t.who[off].copyOf, why)
			}
		}
	}
}

// packetVerdict says why a frame was refused.
func packetVerdict(e unix.Errno) frame.Reason {
	switch e {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		return frame.PortFull
	case unix.EMSGSIZE:
		return frame.TooBig
	case unix.ENETDOWN, unix.EHOSTDOWN:
		return frame.Unreachable
	case unix.ENXIO, unix.ENODEV:
		return frame.PortDown
	}
	return frame.SendFailed
}

// cutApart sends the datagrams of a run that was refused one by one.
func (s *packetSender) cutApart(fd uintptr, who *packetCopy) {
	i, k, set := s.i, s.k, s.set
	d, t := &s.win[who.d], &s.apart
	to := &d.To[who.to]
	s.i, s.k, s.set = who.d, who.to, s.p.sets[d.Set].Load()
	if h, _ := s.nextHop(to); h != nil && h.mac.Load() != 0 {
		c := cursor{parts: d.Parts}
		c.skip(int(who.off))
		seg := int(who.seg)
		off, n := int(who.off), min(size(d), int(who.off)+int(who.segs)*seg)
		for ; off < n; off += seg {
			if t.n == chunk || len(t.iov)+len(d.Parts)+1 > allIov {
				s.push(fd, t)
				t.clear()
			}
			s.add(t, frame.MACFrom(h.mac.Load()), d, to, &c, off, min(seg, n-off), seg)
		}
		s.push(fd, t)
	} else {
		s.lose(who.copyOf, frame.Unresolved)
	}
	t.clear()
	s.i, s.k, s.set = i, k, set
}

// lose books what one message carries. A copy that is lost in several pieces, which follow
// each other, is one copy lost.
func (s *packetSender) lose(c copyOf, why frame.Reason) {
	if c.d != s.last.d || c.to != s.last.to {
		lose(&s.win[c.d], why)
	}
	s.last = c
	s.count.lost[why].Add(uint64(c.segs))
}

// loseCopy books n bytes of the copy in hand.
func (s *packetSender) loseCopy(why frame.Reason, n, seg int) {
	s.lose(copyOf{d: s.i, segs: int32(max(1, (n+max(seg, 1)-1)/max(seg, 1))), to: s.k}, why)
}

// loseAll books every copy of the datagram in hand.
func (s *packetSender) loseAll(why frame.Reason) {
	d := &s.win[s.i]
	segs := segments(d)
	for range d.To {
		lose(d, why)
		s.count.lost[why].Add(uint64(segs))
	}
}
