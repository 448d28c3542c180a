package afpacket

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// listen reads what neighbours say, and errors, until the underlay is closed.
func (p *Underlay) listen() {
	var rx sys.PacketReader
	b := make([]byte, 4<<10) // no message is longer; of an error the start is enough
	_ = p.control.Conn.Read(func(fd uintptr) bool {
		for {
			n, aux, errno := rx.Read(fd, nil, b)
			switch {
			case errno == unix.EAGAIN:
				return false
			case errno == unix.ENETDOWN: // told once when the interface goes down
			case errno != 0:
				return true // the interface is gone, as the one who follows it says
			case !aux.Cut:
				p.heard(b[:n])
			}
		}
	})
}

func (p *Underlay) heard(b []byte) {
	at := p.place.Load()
	if n, ok := at.who.read(b); ok {
		if n.told || n.sure {
			p.hops.learn(&n, time.Now())
		}
		if n.asks && !p.hostAnswers(at) {
			p.say(at.who.answer(&n))
		}
		return
	}
	if x, ok := at.who.readError(b); ok && p.sends(x.srcPort) {
		p.tell(&x)
	}
}

// leastQuote is how much of a payload an error must quote for its MTU to be believed: the header
// of a tunnel, which says whether the packet is one of ours. Of a UDP socket the kernel knows the
// ports; here thousands would do.
const leastQuote = 8

// tell books an error.
func (p *Underlay) tell(x *icmpError) {
	switch c := &p.errors; x.kind {
	case errRefused:
		c.Refused.Add(1)
	case errUnreachable:
		c.Unreachable.Add(1)
	case errTooBig:
		c.TooBig.Add(1)
		if x.to.IsLinkLocal() {
			x.to.Scope = uint32(p.dev.Index)
		}
		if f := p.pathMTU.Load(); f != nil && x.mtu != 0 && len(x.quoted) >= leastQuote {
			(*f)(x.to, x.mtu, x.quoted)
		}
	case errProhibited:
		c.Prohibited.Add(1)
	default:
		c.Other.Add(1)
	}
}

// tend sees to the next hops until the underlay is closed.
func (p *Underlay) tend() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-p.dev.Done():
			return
		case <-p.hops.kick:
		case <-t.C:
		}
		now := time.Now()
		next := p.hops.tend(now)
		// However many hops there are, and however often they are new, this takes a tenth of a
		// processor at most.
		pause := max(10*time.Since(now), time.Millisecond)
		select {
		case <-p.dev.Done():
			return
		case <-time.After(pause):
		}
		t.Reset(max(time.Until(next), 0))
	}
}

// ask sends a question, emit a frame that has waited for the answer.
func (p *Underlay) ask(ip hopKey, mac frame.MAC) { p.say(p.place.Load().who.question(ip, mac)) }

func (p *Underlay) emit(b []byte) {
	if why := p.say(b); why != frame.NotDropped {
		p.late.Lost[why].Add(1)
		return
	}
	p.late.Add(&datagrams.Sum{Datagrams: 1})
}

// say sends a frame by the socket for such.
func (p *Underlay) say(b []byte) (why frame.Reason) {
	if len(b) == 0 {
		return frame.SendFailed
	}
	why = frame.PortDown
	_ = p.control.Conn.Control(func(fd uintptr) {
		if _, errno := sys.WriteFD(fd, b); errno == 0 {
			why = frame.NotDropped
		} else {
			why, _ = datagrams.Verdict(unix.Errno(errno))
		}
	})
	return why
}

// announce tells all on the link where our address is, if we are to answer for it.
func (p *Underlay) announce() {
	if at := p.place.Load(); !p.hostAnswers(at) {
		p.say(at.who.announcement())
	}
}

// An ownership is what is known about whether this host has our address itself.
type ownership struct {
	mu  sync.Mutex
	has bool
	at  time.Time
}

// ownAge is how long that is believed.
const ownAge = time.Second

// hostAnswers reports whether this host has our address, and so answers questions for it.
func (p *Underlay) hostAnswers(at *place) bool {
	o := at.owned
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); now.Sub(o.at) > ownAge {
		o.at = now
		_ = p.inNamespace(func() error {
			has, err := hostHas(at.local.Addr().WithZone(""))
			if err == nil {
				o.has = has
			}
			return err
		})
	}
	return o.has
}

// inNamespace runs f in the network namespace of the sockets.
func (p *Underlay) inNamespace(f func() error) (err error) {
	if e := p.control.Conn.Control(func(fd uintptr) { err = sys.InNamespaceOf(fd, f) }); e != nil {
		return e
	}
	return err
}

// hostHas reports whether an interface has the address.
func hostHas(a netip.Addr) (bool, error) {
	addrs, err := net.InterfaceAddrs()
	for _, x := range addrs {
		if n, ok := x.(*net.IPNet); ok {
			if y, ok := netip.AddrFromSlice(n.IP); ok && y.Unmap() == a {
				return true, nil
			}
		}
	}
	return false, err
}
