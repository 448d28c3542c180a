package policy

import "slices"

// An addrs is a compiled side: the sets of rules by the class of an address, and by its services.
type addrs struct {
	sets     []uint32    // nil if no rule asks for addresses
	nonIP    uint32      // of frames without an address
	services [][]service // in order; nil if no rule asks for sets of ports
	other    uint32      // of other services
	portless uint32      // of packets without a port
}

// A service is a protocol with a port, as serviceOf returns it.
type service struct{ number, set uint32 }

// begin returns the addrs of no class.
func (s *side) begin(p *pool) (a addrs) {
	if s.asksAddr {
		a.sets, a.nonIP = []uint32{}, p.name(s.nonIP)
	}
	if s.asksPort {
		a.services, a.other, a.portless = [][]service{}, p.name(s.portFree), p.name(s.portless)
	}
	return a
}

// compile gives a the sets of some classes. Readers of the old ones are not disturbed.
func (s *side) compile(p *pool, a *addrs, classes []addrClass, which []uint32) {
	if s.asksAddr {
		a.sets = renewed(a.sets, len(classes), which)
		for _, c := range which {
			a.sets[c] = p.name(s.byAddr(classes[c].labels))
		}
	}
	if s.asksPort {
		a.services = renewed(a.services, len(classes), which)
		for _, c := range which {
			a.services[c] = s.servicesOf(p, classes[c].labels)
		}
	}
}

// renewed returns a list of length n that has some elements to write: behind the old ones, or in a copy.
func renewed[T any](list []T, n int, which []uint32) []T {
	was := len(list)
	if slices.ContainsFunc(which, func(c uint32) bool { return int(c) < was }) {
		list = slices.Clone(list)
	}
	return slices.Grow(list, n-was)[:n]
}

func (s *side) servicesOf(p *pool, labels []label) (list []service) {
	for _, x := range labels {
		n := x.service()
		i, ok := slices.BinarySearchFunc(list, n, func(v service, n uint32) int { return int(v.number) - int(n) })
		if n != 0 && !ok {
			list = slices.Insert(list, i, service{n, p.name(s.byPort(labels, n))})
		}
	}
	return list
}

// ofService returns the set of an address of a class with a port of a protocol, which may be unknown.
func (a *addrs) ofService(class uint32, protocol uint8, port uint16, known bool) uint32 {
	if !known {
		return a.portless
	}
	list, n := a.services[class], serviceOf(protocol, port)
	for lo, hi := 0, len(list); lo < hi; {
		switch mid := (lo + hi) / 2; {
		case list[mid].number == n:
			return list[mid].set
		case list[mid].number < n:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return a.other
}
