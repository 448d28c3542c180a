package state

import (
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// own is what this VTEP advertises, in parts.
type own struct {
	parts [MaxParts]part
	in    map[Key]uint8 // the part of a host
}

type part struct {
	hosts   []Host // sorted; written in place, the database has a copy
	dirty   bool
	refresh time.Duration // when it is advertised again, 0 = it has nothing to say
	seq     uint64
}

// Add advertises a host, or says something else of it. It reports whether there is room.
func (s *State) Add(h Host) bool {
	if !h.valid() {
		return false
	}
	if n, ok := s.own.in[h.key()]; ok {
		if slices.Contains(s.own.parts[n].hosts, h) {
			return true
		}
		s.Remove(h.VNI, h.MAC)
	}
	if len(s.own.in) >= MaxHosts {
		return false
	}
	for n := range s.own.parts { // one has room, for MaxHosts is less than all parts hold
		p := &s.own.parts[n]
		if len(p.hosts) >= PartHosts {
			continue
		}
		i, _ := slices.BinarySearchFunc(p.hosts, h, Host.compare)
		p.hosts = slices.Insert(p.hosts, i, h)
		p.dirty, s.own.in[h.key()] = true, uint8(n)
		break
	}
	return true
}

// Remove advertises a host no more.
func (s *State) Remove(vni frame.VNI, mac frame.MAC) {
	k := Key{vni, mac}
	n, ok := s.own.in[k]
	if !ok {
		return
	}
	p := &s.own.parts[n]
	p.hosts = slices.DeleteFunc(p.hosts, func(h Host) bool { return h.key() == k })
	p.dirty = true
	delete(s.own.in, k)
}

func (o *own) clear() {
	clear(o.in)
	for n := range o.parts {
		if p := &o.parts[n]; len(p.hosts) > 0 {
			p.hosts, p.dirty = nil, true
		}
	}
}

// Own returns what this VTEP advertises of a host.
func (s *State) Own(vni frame.VNI, mac frame.MAC) (Host, bool) {
	if n, ok := s.own.in[Key{vni, mac}]; ok {
		for _, h := range s.own.parts[n].hosts {
			if h.VNI == vni && h.MAC == mac {
				return h, true
			}
		}
	}
	return Host{}, false
}

// OwnHosts returns how many hosts and segments this VTEP advertises.
func (s *State) OwnHosts() int { return len(s.own.in) }

// originate advertises the parts that have changed, or that are due again.
func (s *State) originate(now time.Duration) {
	for n := range s.own.parts {
		if p := &s.own.parts[n]; p.dirty || p.refresh != 0 && now >= p.refresh {
			s.advertise(now, uint8(n))
		}
	}
}

// advertise floods a part anew.
func (s *State) advertise(now time.Duration, n uint8) {
	p := &s.own.parts[n]
	p.seq++
	p.dirty, p.refresh = false, 0
	if len(p.hosts) > 0 {
		p.refresh = now + Hold/3
	}
	hosts := slices.Clone(p.hosts)
	s.install(now, Advert{ID{s.self, n}, Head{p.seq, sum(hosts)}, Hold, hosts}, nil)
}
