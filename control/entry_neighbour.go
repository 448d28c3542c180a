package control

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
)

// A neighbour is what a neighbour table has for an address. The zero value is none.
type neighbour struct {
	table  *arp.Table
	mac    frame.MAC
	origin arp.Origin
	flags  arp.Flags
}

// An ipChange is the change of a neighbour: now is its row, was what is written.
type ipChange struct {
	now ref
	was neighbour
}

// neighbour returns the neighbour of a row.
func (r *record) neighbour() neighbour {
	if r.place == nil || r.place.arp == nil {
		return neighbour{}
	}
	x := neighbour{r.place.arp, r.mac, arp.Control, arp.Taught}
	if r.place.row.(MAC).Router {
		x.flags |= arp.Router
	}
	if r.place.owner.static {
		x.origin = arp.Static
	}
	return x
}

func (t *tx) touchIP(k ipKey) {
	c, first := t.ips.touch(k)
	if !first {
		return
	}
	for n, r := range t.p.ips.all(&t.p.store, k) {
		if r.flags&taught != 0 {
			c.now, c.was = n, r.neighbour()
			return
		}
	}
}

// setIP writes the neighbour of the row that counts. A row waits as a whole, with its place.
func (t *tx) setIP(k ipKey, c *ipChange) {
	var next ref
	for n := range t.p.ips.all(&t.p.store, k) {
		if t.usable(n, t.find) {
			next = n
			break
		}
	}
	if c.now != next {
		t.teach(c.now, false)
		t.teach(next, true)
		c.now = next
	}
	x, again := t.p.at(next).neighbour(), t.p.at(next).flags&advanced != 0
	if x == c.was && !t.again && !again || x.table == nil {
		return
	}
	if c.was.table != x.table {
		t.removeIP(k, c)
	}
	delete(t.p.gaveIP, k)
	ip := netip.AddrFrom16(k.ip).Unmap()
	same := false
	set, err := x.table.SetIf(ip, x.mac, x.origin, x.flags, func(was arp.Entry) bool {
		same = x.is(was)
		return !same && (x.origin != arp.Control || (again || was.Origin != arp.Snooped || !was.From.Local()) && (was.Origin != arp.Static || c.was.is(was)))
	})
	switch {
	case err != nil:
		t.fail(next, err)
		return
	case set:
		t.p.stats.Neighbours++
	case !same:
		t.p.stats.GivenWay++
		t.p.gaveIP[k] = true
	}
	c.was = x
}

// teach records whether a row is in a neighbour table.
func (t *tx) teach(n ref, on bool) {
	if r := t.p.at(n); n != 0 && r.flags&taught != 0 != on {
		r.flags ^= taught
	}
}

// is reports whether a table has this neighbour.
func (x neighbour) is(was arp.Entry) bool {
	return x.table != nil && was.MAC == x.mac && was.Origin == x.origin && was.Flags == x.flags
}

func (t *tx) clearIP(k ipKey, c *ipChange) {
	if t.p.at(c.now).neighbour().table == nil {
		t.removeIP(k, c)
	}
}

// removeIP removes what was written, if it is still there.
func (t *tx) removeIP(k ipKey, c *ipChange) {
	if delete(t.p.gaveIP, k); c.was.table != nil {
		ip := netip.AddrFrom16(k.ip).Unmap()
		if c.was.table.DeleteIf(ip, c.was.is) {
			t.p.stats.Neighbours++
		}
		c.was = neighbour{}
	}
}
