package metrics

import "github.com/vxswitch/vxswitch/snoop"

func (s sink) multicast(vni string, st snoop.Stats) {
	s = s.with("vni", vni)
	messages := s.counter("multicast_messages", "IGMP and MLD messages, and those of multicast routers, by type: malformed and refused ones are dropped.", "type")
	messages(st.Reports, "report")
	messages(st.Leaves, "leave")
	messages(st.Queries, "query")
	messages(st.Routers, "router")
	messages(st.Other, "other")
	messages(st.Malformed, "malformed")
	messages(st.Refused, "refused")
	s.counter("multicast_sent_queries", "Queries sent.")(st.Sent)
	s.counter("multicast_full", "Listeners without room, whose port or peer gets the frames of all groups.")(st.Full)
	s.gauge("multicast_groups", "Groups with listeners.")(uint64(st.Groups))
	s.gauge("multicast_listeners", "Listeners: groups at ports and peers.")(uint64(st.Listeners))
	s.gauge("multicast_crowded", "Ports and peers that get the frames of all groups, for lack of room for a listener.")(uint64(st.Crowded))
	active := s.gauge("multicast_active", "1 while frames go only to who listens: there is a querier, and hosts have answered.", "family")
	active(one(st.IPv4), "ipv4")
	active(one(st.IPv6), "ipv6")
}

func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
