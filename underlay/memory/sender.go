package memory

import (
	"net"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// Sender returns worker w's Sender; the same number gives the same Sender.
func (m *Underlay) Sender(w int) frame.Sender {
	s, ok := m.senders.Load(w)
	if !ok {
		s, _ = m.senders.LoadOrStore(w, &sender{m: m})
	}
	return s.(*sender)
}

type sender struct {
	m    *Underlay
	seg  [][]byte // scratch memory for the pieces of a segment
	sent atomic.Uint64
	lost datagrams.Lost
}

// Send implements [frame.Sender].
func (s *sender) Send(ds []frame.Datagram) error {
	closed := s.m.isClosed()
	for i := range ds {
		d := &ds[i]
		d.Lost, d.Drop = 0, frame.NotDropped
		ports := s.m.sets.Get(d.Set)
		for k := range d.To {
			switch {
			case closed:
				s.lose(d, frame.PortDown)
			case ports == nil:
				s.lose(d, frame.SendFailed)
			case s.m.ip && datagrams.Protocol(d.Parts) < 0:
				s.lose(d, frame.BadHeader)
			default:
				s.send(d, &d.To[k], *ports)
			}
		}
	}
	if closed {
		return net.ErrClosed
	}
	return nil
}

// send sends one copy, a run segment by segment. A run counts as one lost copy in d, however many segments are lost.
func (s *sender) send(d *frame.Datagram, to *frame.Endpoint, ports []uint16) {
	if to.Is4() != s.m.Is4() {
		s.lose(d, frame.Unreachable)
		return
	}
	x := meta{src: s.m.at.key, dst: *to, tos: d.TOS, ttl: d.TTL}
	x.dst.Scope = 0
	if s.m.ip {
		x.dst.Port, x.flow = 0, d.Flow
	} else {
		x.src.Port = ports[datagrams.Index(d.Flow, len(ports))]
	}
	switch {
	case d.TTL != 0:
	case to.IsMulticast():
		x.ttl = 1
	default:
		x.ttl = s.m.ttl
	}
	n, seg := datagrams.Size(d), int(d.Seg)
	if seg == 0 || seg > n {
		seg = n
	}
	c, last := datagrams.At(d.Parts, 0), frame.NotDropped
	for off := 0; off < n || off == 0; off += seg {
		k := min(seg, n-off)
		s.seg = s.seg[:0]
		for left := k; left > 0; left -= len(s.seg[len(s.seg)-1]) {
			s.seg = append(s.seg, c.Next(left))
		}
		switch why, mtu := s.m.net.send(s.m, x, d.DF, s.seg, k); why {
		case frame.NotDropped:
			s.sent.Add(1)
		case frame.TooBig:
			s.m.report(&x.dst, mtu, nil)
			fallthrough
		default:
			s.lost[why].Add(1)
			last = why
		}
		if seg == 0 {
			break
		}
	}
	if last != frame.NotDropped {
		datagrams.Lose(d, last)
	}
	clear(s.seg)
}

func (s *sender) lose(d *frame.Datagram, why frame.Reason) {
	datagrams.Lose(d, why)
	s.lost[why].Add(1)
}
