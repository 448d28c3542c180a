package endp

import (
	"net/netip"
	"slices"
	"time"
)

// A Server lists the clients of networks. Times are since any one moment, and never go back.
type Server struct {
	life     uint64
	began    time.Duration
	networks map[uint32]*network
	version  uint64 // of the last change in any network
	clients  int
	gone     int // that are remembered, of all networks
}

type network struct {
	clients map[netip.Addr]*client
	live    int      // of these
	version uint64   // of the last change
	log     []change // by version; those that another one of the client follows are void
	floor   uint64   // whoever left up to this version may be forgotten
}

type client struct {
	Client
	version uint64
	until   time.Duration
}

type change struct {
	version uint64
	addr    netip.Addr
}

// NewServer returns a server without clients. Its life is not 0, and differs from the former ones.
func NewServer(now time.Duration, life uint64) *Server {
	return &Server{life: life, began: now, networks: map[uint32]*network{}}
}

// Clients returns how many clients there are.
func (s *Server) Clients() int { return s.clients }

// Register lists a client, or forgets one that leaves. It reports whether there was room.
func (s *Server) Register(now time.Duration, id uint32, from netip.Addr, m Register) bool {
	n := s.networks[id]
	var c *client
	if n != nil {
		c = n.clients[from]
	}
	there := c != nil && !c.Gone
	switch {
	case m.Leave && there:
		s.leave(id, n, c)
		return true
	case m.Leave:
		return true
	case !there && s.clients >= MaxClients:
		return false
	case n == nil:
		n = &network{clients: map[netip.Addr]*client{}, version: s.version, floor: s.version}
		s.networks[id] = n
	}
	if there && c.Name == m.Name {
		c.until = now + Age
		return true
	}
	if c == nil {
		c = new(client)
		n.clients[from] = c
	} else if c.Gone {
		s.gone--
	}
	if !there {
		s.clients++
		n.live++
	}
	c.Client, c.until = Client{Addr: from, Name: m.Name}, now+Age
	s.note(n, c)
	return true
}

// leave lists a client as one that has gone, and forgets a network without clients.
func (s *Server) leave(id uint32, n *network, c *client) {
	s.clients--
	n.live--
	c.Gone = true
	s.gone++
	if s.note(n, c); n.live == 0 {
		s.gone -= len(n.clients)
		delete(s.networks, id)
	} else if len(n.clients)-n.live > MaxGone || s.gone > MaxClients {
		s.gone -= n.forget()
	}
}

// note gives a change its version.
func (s *Server) note(n *network, c *client) {
	s.version++
	n.version, c.version = s.version, s.version
	n.log = append(n.log, change{n.version, c.Addr})
	if len(n.log) > 2*len(n.clients)+64 {
		n.log = slices.DeleteFunc(n.log, func(x change) bool { return n.void(x) })
	}
}

func (n *network) void(x change) bool {
	c := n.clients[x.addr]
	return c == nil || c.version != x.version
}

// forget forgets the older half of those that have gone, and returns how many.
func (n *network) forget() (forgotten int) {
	half := (len(n.clients) - n.live + 1) / 2
	for _, x := range n.log {
		if forgotten == half {
			break
		}
		if c := n.clients[x.addr]; !n.void(x) && c.Gone {
			delete(n.clients, x.addr)
			n.floor = x.version
			forgotten++
		}
	}
	return forgotten
}

// Probe answers.
func (s *Server) Probe(now time.Duration, id uint32, m Probe) Clients {
	a := Clients{Life: s.life, Young: now < s.began+Youth}
	n := s.networks[id]
	if n == nil {
		return a
	}
	if m.Life == s.life && m.Version <= n.version && m.Version >= n.floor {
		a.Since = m.Version
	}
	a.Version = a.Since
	i, _ := slices.BinarySearchFunc(n.log, a.Since+1, func(x change, v uint64) int { return int(int64(x.version - v)) })
	for _, x := range n.log[i:] {
		if n.void(x) {
			continue
		}
		if len(a.List) == MaxPage {
			a.More = true
			return a
		}
		a.List = append(a.List, n.clients[x.addr].Client)
		a.Version = x.version
	}
	a.Version = n.version
	return a
}

// Poll forgets clients that have not registered. It is called every second.
func (s *Server) Poll(now time.Duration) {
	for id, n := range s.networks {
		for _, c := range n.clients {
			if !c.Gone && now >= c.until {
				s.leave(id, n, c)
			}
		}
	}
}
