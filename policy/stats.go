package policy

// A Count is packets and their bytes, from the first byte of the frame on. A superframe is
// one packet. Of both slots, if a Policy is in both.
type Count struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// FlowStats counts flows.
type FlowStats struct {
	Tracked int    `json:"tracked"` // now; those that have just expired are still in it
	Opened  uint64 `json:"opened"`
	Aged    uint64 `json:"aged"`    // silent for their timeout
	Evicted uint64 `json:"evicted"` // made room for others: see doc.go, Flows
	Revoked uint64 `json:"revoked"` // not allowed any more by rules that have changed
	Full    uint64 `json:"full"`    // passed untracked, for there was no room
}

// Stats counts what became of packets. Each is in exactly one of Rules, Default,
// Neighbours, Replies, Related, Fragments and Malformed.
type Stats struct {
	Rules      map[string]Count `json:"rules"`      // by name: what the rule decided on, established flows included
	Default    Count            `json:"default"`    // no rule matched
	Neighbours Count            `json:"neighbours"` // ARP and ND, likewise
	Replies    uint64           `json:"replies"`    // passed as part of a flow
	Related    uint64           `json:"related"`    // ICMP errors about one
	Fragments  uint64           `json:"fragments"`  // later ones that followed their first
	Malformed  uint64           `json:"malformed"`  // dropped: headers that cannot be read
	Flows      FlowStats        `json:"flows"`
}

// Stats returns a snapshot.
func (p *Policy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := func(name string) Count {
		a := p.counters[name]
		packets, bytes := p.sum(a.number)
		return Count{packets - a.packets, bytes - a.bytes}
	}
	n := p.event
	s := Stats{
		Rules: map[string]Count{}, Default: of(nameDefault), Neighbours: of(nameNeighbours),
		Replies: n(evReplies), Related: n(evRelated), Fragments: n(evFragments), Malformed: n(evMalformed),
		Flows: FlowStats{
			Tracked: p.flows.len(), Opened: n(evOpened), Aged: p.flows.aged.Load(),
			Evicted: n(evEvicted), Revoked: n(evRevoked), Full: n(evFull),
		},
	}
	for _, name := range p.names {
		s.Rules[name] = of(name)
	}
	return s
}
