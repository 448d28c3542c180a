package policy

import (
	"encoding/binary"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// A place is a host at a port or behind a peer, and those it talks to.
type place struct {
	l             *lab
	near, far     frame.Dest
	tcp, udp, raw frame.Frame // from the host to the other side
	host, peer    byte
	frag          frame.Frame
	later         frame.Frame
}

func (l *lab) place(host, peer int, near, far frame.Dest) *place {
	f := func(x pkt) frame.Frame {
		x.src, x.dst = host, peer
		return x.frame(l)
	}
	return &place{l: l, near: near, far: far, host: byte(host), peer: byte(peer), tcp: f(pkt{kind: "tcp"}), udp: f(pkt{kind: "udp"}), raw: f(pkt{kind: "gre"}),
		frag: f(pkt{kind: "udp", frag: "first"}), later: f(pkt{kind: "udp", frag: "later"})}
}

// send judges a packet of flow n as it comes in, from the host or back to it.
func (p *place) send(f *frame.Frame, n int, flags byte, back bool) bool {
	b := f.Bytes()
	from, to, sport, dport := []byte{10, 0, 0, p.host}, []byte{10, 1, byte(n >> 16), p.peer}, 1024+n&0x3fff, 80+n>>14&3
	f.From = p.near
	if back {
		from, to, sport, dport, f.From = to, from, dport, sport, p.far
	}
	copy(b[26:], from)
	copy(b[30:], to)
	switch b[23] {
	case 6:
		b[47] = flags
		fallthrough
	case 17:
		binary.BigEndian.PutUint16(b[34:], uint16(sport))
		binary.BigEndian.PutUint16(b[36:], uint16(dport))
	default: // as many flows as protocols and hosts
		copy(b[26:], []byte{10, byte(n >> 8)})
		copy(b[30:], []byte{10, byte(n)})
	}
	return p.l.p.Ingress().Process(f, p.l.at) == frame.Continue
}

// datagram judges both fragments of a datagram, and returns whether the later one passes.
func (p *place) datagram(n int) bool {
	for _, f := range []*frame.Frame{&p.frag, &p.later} {
		b := f.Bytes()
		f.From = p.near
		copy(b[26:], []byte{10, 0, 0, p.host})
		copy(b[30:], []byte{10, 1, byte(n >> 16), p.peer})
		binary.BigEndian.PutUint16(b[18:], uint16(n))
	}
	p.l.p.Ingress().Process(&p.frag, p.l.at)
	n1 := p.l.p.event(evFragments)
	p.l.p.Ingress().Process(&p.later, p.l.at)
	return p.l.p.event(evFragments) > n1
}

const (
	tcpFIN, tcpSYN, tcpACK = 1, 2, 16
)

// manyPeers is the attack of who can send in the name of any peer: to have others behind the
// same tunnel suffer is what no table can prevent.
const manyPeers = "many peers"

// attacks are what a port, with help from the other side, can do with flow n.
var attacks = map[string]func(p *place, n int){
	"SYN": func(p *place, n int) { p.send(&p.tcp, n, tcpSYN, false) },
	"SYN/ACK": func(p *place, n int) {
		p.send(&p.tcp, n, tcpSYN, false)
		p.send(&p.tcp, n, tcpSYN|tcpACK, true)
	},
	"ACK": func(p *place, n int) {
		p.send(&p.tcp, n, tcpSYN, false)
		p.send(&p.tcp, n, tcpSYN|tcpACK, true)
		p.send(&p.tcp, n, tcpACK, false)
	},
	"data": func(p *place, n int) {
		p.send(&p.tcp, n, tcpSYN, false)
		p.send(&p.tcp, n, tcpSYN|tcpACK, true)
		for _, back := range []bool{false, true, false} {
			p.send(&p.tcp, n, tcpACK, back)
		}
	},
	"question": func(p *place, n int) { p.send(&p.udp, n, 0, false) },
	"answered question": func(p *place, n int) {
		p.send(&p.udp, n, 0, false)
		p.send(&p.udp, n, 0, true)
	},
	"ping-pong": func(p *place, n int) {
		for _, back := range []bool{false, true, false, true} {
			p.send(&p.udp, n, 0, back)
		}
	},
	"other protocol": func(p *place, n int) {
		for _, back := range []bool{false, true, false} {
			p.send(&p.raw, n, 0, back)
		}
	},
	"fragments": func(p *place, n int) { p.datagram(n) },
	manyPeers: func(p *place, n int) {
		if p.near.Peer() != 0 {
			p.near = frame.NewDest(p.near.Port(), uint16(2+n%500))
		}
		for _, back := range []bool{false, true, false} {
			p.send(&p.udp, n, 0, back)
		}
	},
}

// live is what an honest host does in a tick: new connections and questions, connections that
// are hardly used, datagrams in fragments. It returns how much of it went well.
func (p *place) live(tick int) (n int) {
	good := func(ok bool) { n += b2i(ok) }
	const idle = 50
	if tick == 0 {
		for i := range idle {
			attacks["data"](p, i)
		}
	}
	for i := range idle { // a word every two minutes
		if tick%120 == 119 {
			p.send(&p.tcp, i, tcpACK, false)
			good(p.send(&p.tcp, i, tcpACK, true))
		}
	}
	c := 100 + tick
	p.send(&p.tcp, c, tcpSYN, false)
	good(p.send(&p.tcp, c, tcpSYN|tcpACK, true))
	p.send(&p.tcp, c, tcpACK, false)
	if c -= 10; tick >= 10 { // ten seconds later
		good(p.send(&p.tcp, c, tcpACK|tcpFIN, true))
		p.send(&p.tcp, c, tcpACK|tcpFIN, false)
	}
	q := 100 + tick
	p.send(&p.udp, q, 0, false)
	if tick >= 1 { // a slow answer
		good(p.send(&p.udp, q-1, 0, true))
	}
	good(p.datagram(q))
	return n
}

// Whatever one port and one peer do, with help from the other side, in ten minutes:
// others have their flows as if they were alone.
func TestWorstFlows(t *testing.T) {
	const limit, rate, seconds = 1024, 40, 600
	victimPort, attackPort := frame.NewDest(1, 0), frame.NewDest(2, 0)
	victimPeer, attackPeer := frame.NewDest(3, 1), frame.NewDest(3, 2)
	// run returns what two honest hosts got done, one at a port and one behind a peer.
	run := func(attack func(p *place, n int)) (local, remote, full int) {
		l := newLab(t, &Config{Default: Deny, MaxFlows: limit, Rules: []Rule{{Src: prefixes("10.0.0.0/24")}, {Protocol: 47}}})
		l.at.Tick = 0
		l.p.fragments.init(limit)
		v, w := l.place(1, 11, victimPort, victimPeer), l.place(2, 12, victimPeer, victimPort)
		a, b := l.place(9, 19, attackPort, attackPeer), l.place(8, 18, attackPeer, attackPort)
		n := 0
		hit := func(times int) {
			for range times {
				if attack == nil {
					return
				}
				n++
				attack(a, n)
				attack(b, n)
			}
		}
		hit(2 * limit)
		if attack != nil {
			full = max(l.p.flows.len(), l.p.fragments.len())
		}
		for tick := range seconds {
			l.at.Tick++
			l.p.Housekeep(l.at.Tick)
			hit(rate / 2)
			local += v.live(tick)
			remote += w.live(tick)
			hit(rate / 2)
		}
		return local, remote, full
	}
	local, remote, _ := run(nil)
	if local < seconds*3 || local != remote {
		t.Fatalf("alone %d and %d", local, remote)
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			l, r, full := run(attack)
			if full < limit*9/10 {
				t.Errorf("%d flows: no attack", full)
			}
			worst.Kept(t, "flows and fragmented datagrams", local, l)
			if name != manyPeers {
				worst.Kept(t, "flows and fragmented datagrams", remote, r)
			}
		})
	}
}

// What a gateway has routed counts for the worker that read it, or for the peer it came from: one's
// flows leave another's their share, also where a policy sees nothing else.
func TestSharesRouted(t *testing.T) {
	const limit = 256
	for name, by := range map[string]func(l *lab, n int){
		"worker": func(l *lab, n int) { l.at.Worker = n },
		"peer":   func(l *lab, n int) { l.at.From = frame.NewDest(3, uint16(n)) },
	} {
		l := newLab(t, &Config{Default: Deny, MaxFlows: limit, Rules: []Rule{{Src: prefixes("10.0.0.0/24")}}})
		a, v := l.place(9, 19, 0, frame.NewDest(2, 0)), l.place(1, 11, 0, frame.NewDest(2, 0))
		by(l, 1)
		for n := range 4 * limit {
			attacks["ping-pong"](a, n)
		}
		by(l, 2)
		answered := 0
		for n := range 50 {
			v.send(&v.udp, n, 0, false)
		}
		for n := range 50 {
			answered += b2i(v.send(&v.udp, n, 0, true))
		}
		if full := l.p.flows.len(); full != limit || answered != 50 {
			t.Errorf("%s: %d of 50 beside %d flows", name, answered, full)
		}
	}
}
