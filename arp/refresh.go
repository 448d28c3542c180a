package arp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/neighbour"
)

// refreshBurst is how many neighbours Housekeep asks in one tick. A large table takes more, to
// ask all neighbours in time.
const refreshBurst = 256

// Left forgets the neighbours at a port or peer that has gone.
func (r *Responder) Left(d frame.Dest) { r.table.FlushDest(d) }

// Housekeep ages entries and, with Refresh, asks neighbours that have been silent for long. The
// switch's housekeeping calls it once a tick.
func (r *Responder) Housekeep(now frame.Tick) {
	if r.housekept.Swap(uint64(now)+1) == uint64(now)+1 {
		return // another stage of the segment did it
	}
	if r.missing != nil {
		r.forgetQuestions(now)
	}
	if !r.cfg.Refresh {
		r.table.Sweep(now, nil)
		return
	}
	budget := max(refreshBurst, r.table.Len()/max(int(r.table.ageing/8), 1))
	r.table.Sweep(now, func(e Entry) bool {
		if e.From.Peer() != 0 || budget == 0 { // behind a tunnel: the VTEP there asks
			return false
		}
		if !r.cfg.Inject(r.question(e)) {
			return false
		}
		budget--
		r.asked.Add(1)
		return true
	})
}

// question makes the frame that asks one neighbour whether it is there. The answer comes to the
// VTEP's own MAC, where Process learns from it.
func (r *Responder) question(e Entry) *frame.Frame {
	from := netip.IPv4Unspecified()
	if g := r.gateway.Load(); g != nil {
		for _, ip := range g.IPs {
			if ip.Is4() {
				from = ip
			}
		}
	}
	if e.IP.Is6() {
		from = LinkLocal(r.cfg.MAC)
	}
	f := frame.Make(neighbour.Ask(e.IP, e.MAC, from, r.cfg.MAC))
	return &f
}

// LinkLocal returns the IPv6 link-local address made of a MAC (RFC 4291, appendix A).
func LinkLocal(m frame.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}
