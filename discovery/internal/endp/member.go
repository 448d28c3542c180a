package endp

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// A Member is a client of one or two servers. Times are since any one moment, and never go back.
type Member struct {
	name    string
	servers []*server // by address
	changed bool
}

// server is what a Member knows of one.
type server struct {
	addr     netip.Addr
	life     uint64
	version  uint64
	list     map[netip.Addr]string // that counts
	fresh    map[netip.Addr]string // of its new life, until that is complete
	heard    time.Duration
	answered bool // ever
	up       bool // it has answered lately
	probe    time.Duration
	register time.Duration
}

// ServerStatus is what a Member knows of a server.
type ServerStatus struct {
	Addr    netip.Addr
	Up      bool // it answers
	Clients int  // in its list
}

// NewMember returns a client that registers with a name.
func NewMember(name string) *Member { return &Member{name: name} }

// SetServers says which servers there are. What those know that stay is kept.
func (m *Member) SetServers(now time.Duration, addrs []netip.Addr) (leave []Send) {
	var next []*server
	for _, a := range slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare) {
		i := slices.IndexFunc(m.servers, func(s *server) bool { return s.addr == a })
		if i >= 0 {
			next = append(next, m.servers[i])
			continue
		}
		next = append(next, &server{addr: a, list: map[netip.Addr]string{}, probe: now, register: now})
	}
	for _, s := range m.servers {
		if !slices.Contains(next, s) {
			leave = append(leave, m.leave(s))
		}
	}
	m.servers, m.changed = next, true
	return leave
}

// Leave returns what tells all servers that the client goes.
func (m *Member) Leave() (all []Send) {
	for _, s := range m.servers {
		all = append(all, m.leave(s))
	}
	return all
}

func (m *Member) leave(s *server) Send { return Send{s.addr, Register{Name: m.name, Leave: true}} }

// Receive takes the answer of a server, and returns what follows from it. It reports whether the answer was one to a question.
func (m *Member) Receive(now time.Duration, from netip.Addr, a Clients) (next []Send, ok bool) {
	i := slices.IndexFunc(m.servers, func(s *server) bool { return s.addr == from })
	if i < 0 || len(a.List) > MaxPage {
		return nil, false
	}
	s := m.servers[i]
	s.heard, s.answered = now, true
	if !s.up {
		s.up, m.changed = true, true
	}
	switch {
	case a.Life == s.life && a.Since == s.version && (a.Since != 0 || s.fresh != nil):
	case a.Since == 0:
		if a.Life != s.life { // it does not know us
			s.register = now
		}
		s.life, s.fresh = a.Life, map[netip.Addr]string{}
	default:
		return nil, true // an answer that came twice
	}
	s.apply(a)
	m.changed = m.changed || len(a.List) > 0
	if !a.More && !a.Young && s.fresh != nil {
		s.list, s.fresh, m.changed = s.fresh, nil, true
	}
	if a.Young {
		s.probe = min(s.probe, now) // with the next Poll
	}
	if a.More {
		next = append(next, Send{s.addr, Probe{s.life, s.version}})
	}
	return append(next, m.due(now, s)...), true
}

// apply carries out the changes of an answer. What a new life of a server does not know yet stays. No server has more than MaxClients, and
// who says so is not believed.
func (s *server) apply(a Clients) {
	s.version = a.Version
	for _, c := range a.List {
		if c.Gone {
			delete(s.list, c.Addr)
			delete(s.fresh, c.Addr)
			continue
		}
		add(s.list, c)
		if s.fresh != nil {
			add(s.fresh, c)
		}
	}
}

func add(list map[netip.Addr]string, c Client) {
	if _, there := list[c.Addr]; there || len(list) < MaxClients {
		list[c.Addr] = c.Name
	}
}

// Poll returns what is to be sent now. It is called every second.
func (m *Member) Poll(now time.Duration) (out []Send) {
	for _, s := range m.servers {
		if s.up && now-s.heard >= Silence {
			s.up, m.changed = false, true
		}
		out = append(out, m.due(now, s)...)
		if now >= s.probe {
			s.probe = now + ProbeEvery
			out = append(out, Send{s.addr, Probe{s.life, s.version}})
		}
	}
	return out
}

// Ask has the servers asked again within a second: somebody speaks that they have not listed yet.
func (m *Member) Ask(now time.Duration) {
	for _, s := range m.servers {
		s.probe = min(s.probe, now)
	}
}

func (m *Member) due(now time.Duration, s *server) []Send {
	if now < s.register {
		return nil
	}
	s.register = now + RegisterEvery
	return []Send{{s.addr, Register{Name: m.name}}}
}

// Changed reports whether the list may be another one than when it was called last.
func (m *Member) Changed() bool {
	changed := m.changed
	m.changed = false
	return changed
}

// List returns the names of the clients there are: those of the servers that answer, or of all if none does.
func (m *Member) List() map[netip.Addr]string {
	any := slices.ContainsFunc(m.servers, func(s *server) bool { return s.up })
	all := map[netip.Addr]string{}
	for _, s := range m.servers {
		if s.up || !any {
			maps.Copy(all, s.list)
		}
	}
	return all
}

// Servers returns what is known of servers, by address.
func (m *Member) Servers() (list []ServerStatus) {
	for _, s := range m.servers {
		list = append(list, ServerStatus{s.addr, s.up, len(s.list)})
	}
	return list
}
