package policy

// A Count is packets and their bytes, from the first byte of the frame on. A superframe is one
// packet. A Policy in both slots counts a frame twice.
type Count struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// FlowStats counts flows.
type FlowStats struct {
	Tracked int    `json:"tracked"` // now, including those that have just expired
	Opened  uint64 `json:"opened"`
	Aged    uint64 `json:"aged"`    // idle for their timeout
	Evicted uint64 `json:"evicted"` // to make room for others: see Flows in the package documentation
	Revoked uint64 `json:"revoked"` // no longer allowed by changed rules
	Full    uint64 `json:"full"`    // passed untracked: no room
}

// Stats counts packets. Each is in exactly one of Rules, Default, Neighbours, Replies, Related,
// Fragments and Malformed, but for rules with Pass and Log, which count it in addition.
type Stats struct {
	Rules      map[string]Count `json:"rules"`      // by the rule's name, or the tier's for its default; packets of its flows included
	Default    Count            `json:"default"`    // no rule matched
	Neighbours Count            `json:"neighbours"` // ARP and ND that no rule matched
	Replies    uint64           `json:"replies"`    // passed as replies of a flow
	Related    uint64           `json:"related"`    // ICMP errors about a flow
	Fragments  uint64           `json:"fragments"`  // later fragments whose first passed
	Malformed  uint64           `json:"malformed"`  // dropped: malformed headers
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
