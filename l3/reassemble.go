package l3

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/shares"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Packets to the gateway itself are reassembled from their fragments (RFC 1812, section 4.2.2.7;
// RFC 8200, section 4.5). Routed packets are not.

const (
	fragmentTime  = 30  // seconds until an incomplete packet expires
	maxPieces     = 128 // fragments of a packet
	datagramBytes = 256 // that each packet and each fragment counts for beside its data
	maxIP         = 1<<16 - 1
)

// fragmentKey identifies the packet of a fragment. Fragments from two ports or peers are of two
// packets.
type fragmentKey struct {
	src, dst netip.Addr
	id       uint32
	protocol uint8 // of IPv6, 0
	vni      frame.VNI
	from     frame.Dest
}

// A datagram is an incomplete packet.
type datagram struct {
	key     fragmentKey
	head    []byte  // the headers of the first fragment, which has offset 0
	next    uint8   // IPv6: the protocol in the first fragment
	pieces  []piece // in order
	have    int     // bytes of data
	total   int     // of all data, -1 until the last fragment is there
	longest int     // fragment, with its IP header
	dead    bool    // refused: further fragments are dropped
	until   frame.Tick
	at      *shares.Item[*datagram]
}

type piece struct {
	offset int
	more   bool
	data   []byte
}

// fragments holds the incomplete packets of a gateway. Each port and peer has a share.
type fragments struct {
	mu     sync.Mutex
	shares shares.List[*datagram]
	of     map[fragmentKey]*datagram
	swept  frame.Tick
}

func newFragments() fragments { return fragments{of: map[fragmentKey]*datagram{}} }

// add keeps a copy of a fragment, and returns the packet if it is complete. ok is false if the
// fragment was refused. head is that of a first fragment; limit bounds the bytes in all.
func (s *fragments) add(key fragmentKey, x piece, head []byte, next uint8, length, limit int, now frame.Tick) (d *datagram, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d = s.of[key]
	if d != nil && int32(now-d.until) >= 0 {
		s.drop(d)
		d = nil
	}
	if d == nil {
		d = &datagram{key: key, total: -1, until: now + fragmentTime}
		if !s.shares.Room(key.from, datagramBytes, limit, s.drop) {
			return nil, false
		}
		s.of[key] = d
		d.at = s.shares.Add(key.from, d, datagramBytes)
	}
	if d.dead {
		return nil, false
	}
	at, known, fits := d.slot(x)
	switch {
	case known:
		return nil, true
	case !fits || max(len(head), len(d.head))+d.end(x) > maxIP:
		s.shares.Grow(d.at, datagramBytes-d.at.Size)
		*d = datagram{key: key, dead: true, until: d.until, at: d.at}
		return nil, false
	}
	n := len(x.data) + datagramBytes
	if !s.shares.Room(key.from, n, limit, s.drop) || s.of[key] != d { // its own oldest was d
		return nil, false
	}
	s.shares.Grow(d.at, n)
	x.data = bytes.Clone(x.data)
	d.pieces = slices.Insert(d.pieces, at, x)
	d.have += len(x.data)
	d.longest = max(d.longest, length)
	if !x.more {
		d.total = x.offset + len(x.data)
	}
	if x.offset == 0 {
		d.head, d.next = bytes.Clone(head), next
	}
	if d.have != d.total {
		return nil, true
	}
	s.drop(d)
	return d, true
}

// slot returns the index of a fragment among the pieces. A duplicate is known. A fragment that
// overlaps others (RFC 5722, section 4) or contradicts the packet's end does not fit.
func (d *datagram) slot(x piece) (at int, known, fits bool) {
	end := x.offset + len(x.data)
	if len(x.data) == 0 || x.more && len(x.data)%8 != 0 {
		return 0, false, false
	}
	at, same := slices.BinarySearchFunc(d.pieces, x.offset, func(p piece, offset int) int { return p.offset - offset })
	if same && d.pieces[at].more == x.more && bytes.Equal(d.pieces[at].data, x.data) {
		return at, true, false
	}
	switch {
	case same, len(d.pieces) == maxPieces,
		at < len(d.pieces) && (!x.more || end > d.pieces[at].offset),
		at > 0 && d.pieces[at-1].offset+len(d.pieces[at-1].data) > x.offset,
		d.total >= 0 && (!x.more || end > d.total):
		return at, false, false
	}
	return at, false, true
}

// end returns the end of the data so far, with one more fragment.
func (d *datagram) end(x piece) int {
	end := x.offset + len(x.data)
	if n := len(d.pieces); n > 0 {
		end = max(end, d.pieces[n-1].offset+len(d.pieces[n-1].data))
	}
	return end
}

func (s *fragments) drop(d *datagram) {
	delete(s.of, d.key)
	s.shares.Remove(d.at)
}

// expire drops packets that were not completed in time.
func (s *fragments) expire(now frame.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swept == now {
		return // another interface did it
	}
	s.swept = now
	for _, d := range s.of {
		if int32(now-d.until) >= 0 {
			s.drop(d)
		}
	}
}

// reassemble4 keeps a fragment to the gateway, and answers the packet when it is complete.
func (i *Interface) reassemble4(x *packet, p wire.IPv4) frame.Verdict {
	key := fragmentKey{
		src: x.src(), dst: x.dst(), id: uint32(p.ID()), protocol: p.Protocol(), vni: i.cfg.VNI, from: x.f.Origin(),
	}
	at := piece{p.FragmentOffset(), p[6]&0x20 != 0, p.Payload()}
	d, v := i.addFragment(x, key, at, p[:p.HeaderLen()], 0, len(p))
	if d == nil {
		return v
	}
	y := assembled(x, d)
	q := wire.IPv4(y.f.Bytes()[y.ip:])
	q.SetTotalLen(len(q))
	q[6], q[7] = 0, 0
	q.SetChecksum(0)
	q.SetChecksum(wire.Checksum(wire.Sum(q[:q.HeaderLen()], 0)))
	if v := i.answer4(&y, q); v != frame.Reply {
		return v
	}
	q, _ = wire.ParseIPv4(y.f.Bytes()[y.ip:])
	if len(q) <= d.longest {
		i.cfg.Send(returnDest(x.f), y.f)
		return frame.Consume
	}
	return fragment4(y.f, q, y.ip, d.longest, x.f.From, returnDest(x.f), i.cfg.Send)
}

// reassemble6 is reassemble4 for IPv6. It drops the extension headers before the fragment header.
func (i *Interface) reassemble6(x *packet, p wire.IPv6, at int) frame.Verdict {
	h := p[at:]
	field := binary.BigEndian.Uint16(h[2:])
	key := fragmentKey{src: x.src(), dst: x.dst(), id: binary.BigEndian.Uint32(h[4:]), vni: i.cfg.VNI, from: x.f.Origin()}
	d, v := i.addFragment(x, key, piece{int(field &^ 7), field&1 != 0, h[8:]}, p[:wire.IPv6Len], h[0], len(p))
	if d == nil {
		return v
	}
	y := assembled(x, d)
	q := wire.IPv6(y.f.Bytes()[y.ip:])
	q[6] = d.next
	q.SetPayloadLen(len(q) - wire.IPv6Len)
	u, ok := q.Upper()
	if !ok || u.Fragment != 0 {
		return frame.Drop(frame.BadHeader)
	}
	if v := i.answer6(&y, q, u); v != frame.Reply {
		return v
	}
	q, _ = wire.ParseIPv6(y.f.Bytes()[y.ip:])
	if len(q) <= d.longest {
		i.cfg.Send(returnDest(x.f), y.f)
		return frame.Consume
	}
	return fragment6(y.f, q, y.ip, d.longest, key.id, x.f.From, returnDest(x.f), i.cfg.Send)
}

// addFragment keeps a fragment. An answer needs the head of the first one.
func (i *Interface) addFragment(x *packet, key fragmentKey, p piece, head []byte, next uint8, length int) (*datagram, frame.Verdict) {
	g := i.vrf.gateway
	d, ok := g.fragments.add(key, p, head, next, length, g.limits.Load().Fragments, x.tick)
	if !ok {
		return nil, frame.Drop(frame.Fragment)
	}
	return d, frame.Consume
}

// assembled makes a frame of a complete packet.
func assembled(x *packet, d *datagram) packet {
	b := make([]byte, 0, x.ip+len(d.head)+d.total)
	b = append(append(b, x.f.Bytes()[:x.ip]...), d.head...)
	for _, p := range d.pieces {
		b = append(b, p.data...)
	}
	f := frame.Make(b)
	f.Kind, f.From, f.VNI, f.Tunnel = x.f.Kind, x.f.From, x.f.VNI, x.f.Tunnel
	y := *x
	y.f = &f
	return y
}
