package afpacket

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// listen reads ARP, ND and ICMP until the underlay is closed.
func (p *Underlay) listen() {
	var rx sys.PacketReader
	b := make([]byte, 4<<10) // messages are shorter, and the start of an error is enough
	_ = p.control.Conn.Read(func(fd uintptr) bool {
		for {
			n, aux, errno := rx.Read(fd, nil, b)
			switch {
			case errno == unix.EAGAIN:
				return false
			case errno == unix.ENETDOWN: // once, when the interface goes down
			case errno != 0:
				return true // the interface is deleted
			case !aux.Cut:
				p.handle(b[:n])
			}
		}
	})
}

func (p *Underlay) handle(b []byte) {
	if n, ok := p.messenger.read(b); ok {
		if n.told || n.sure {
			p.hops.learn(&n, time.Now())
		}
		if n.asks && !p.cfg.Shared && !p.hostAnswers() {
			p.say(p.messenger.answer(&n))
		}
		return
	}
	if x, ok := p.messenger.readError(b); ok && (p.raw || p.sends(x.srcPort)) {
		p.report(&x)
	}
}

// leastQuote is how much of the payload an error with an MTU must quote: a tunnel header, by which the VTEP
// recognizes its packet; in IP-in-IP the start of the inner one. The ports prove little here, since thousands are in
// use.
const leastQuote = 8

// report counts an error, and passes it on.
func (p *Underlay) report(x *icmpError) {
	if x.to.IsLinkLocal() {
		x.to.Scope = uint32(p.dev.Index)
	}
	if f := p.unreachable.Load(); f != nil && p.raw && x.lost {
		(*f)(x.to, x.quoted)
	}
	switch c := &p.errors; x.kind {
	case errRefused:
		c.Refused.Add(1)
	case errUnreachable:
		c.Unreachable.Add(1)
	case errTooBig:
		c.TooBig.Add(1)
		if f := p.pathMTU.Load(); f != nil && x.mtu != 0 && len(x.quoted) >= leastQuote {
			(*f)(x.to, x.mtu, x.quoted)
		}
	case errProhibited:
		c.Prohibited.Add(1)
	default:
		c.Other.Add(1)
	}
}

// tend does the periodic work of the next hops until the underlay is closed.
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
		// Any number of hops takes at most a tenth of a processor.
		pause := max(10*time.Since(now), time.Millisecond)
		select {
		case <-p.dev.Done():
			return
		case <-time.After(pause):
		}
		t.Reset(max(time.Until(next), 0))
	}
}

// ask sends a request, and emit a frame that has waited for the answer.
func (p *Underlay) ask(ip hopKey, mac frame.MAC) { p.say(p.messenger.question(ip, mac)) }

func (p *Underlay) emit(b []byte) {
	if why := p.write(b); why != frame.NotDropped {
		p.late.Lost[why].Add(1)
		return
	}
	p.late.Add(&datagrams.Sum{Datagrams: 1})
}

// say sends a message, with the tag.
func (p *Underlay) say(b []byte) {
	if v := p.cfg.VLAN; v != 0 && len(b) > 0 {
		b = slices.Insert(b, 12, 0, 0, 0, 0)
		putTag(b, v)
	}
	p.write(b)
}

// write sends a frame on the control socket.
func (p *Underlay) write(b []byte) (why frame.Reason) {
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

// announce announces the local address on the link, unless the host has it: a shared one may have another MAC now.
func (p *Underlay) announce() {
	if p.cfg.Shared || !p.hostAnswers() {
		p.say(p.messenger.announcement())
	}
}

// An ownership records whether the host has the local address.
type ownership struct {
	mu  sync.Mutex
	has bool
	at  time.Time
}

// ownAge is how long that is valid.
const ownAge = time.Second

// hostAnswers reports whether the host has the local address, and so answers requests for it.
func (p *Underlay) hostAnswers() bool {
	o := &p.owned
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); now.Sub(o.at) > ownAge {
		o.at = now
		_ = p.inNamespace(func() error {
			has, err := hostHas(p.local.Addr().WithZone(""))
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
