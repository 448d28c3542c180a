package main

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

func byReason(d *frame.Drops) map[string]uint64 {
	m := map[string]uint64{}
	for r, n := range d.All() {
		m[r.String()] += n
	}
	return m
}

func (s *server) getVTEP(w http.ResponseWriter, r *http.Request) error {
	return list(w, vteps(s.n))
}

// vteps returns the tunnels in the order of the configuration.
func vteps(n *node.Node) iter.Seq[api.VTEP] {
	return func(yield func(api.VTEP) bool) {
		tunnels := n.Tunnels()
		for _, c := range n.Running().Tunnels {
			v := tunnels[c.Name]
			if v == nil {
				continue
			}
			st := v.Stats()
			x := api.VTEP{
				Name: c.Name, Type: encap.Type(c.Type).String(), Local: local(&c, c.Local), MTU: v.MTU(0), Tx: st.Tx,
				Learned: st.Learned, Lost: lost(&st), Peers: []api.Peer{},
			}
			if c.Local6.IsValid() {
				x.Local6 = local(&c, c.Local6)
			}
			for _, p := range st.Peers {
				y := api.Peer{
					Tunnel: c.Name, Addr: v.PeerName(p.Peer), Listed: p.Listed, Dead: p.Dead, MTU: p.MTU,
					Rx: p.Rx.Frames, Tx: p.Tx.Frames, RxBytes: p.Rx.Bytes, TxBytes: p.Tx.Bytes,
				}
				if !p.LastHeard.IsZero() {
					y.LastHeard = &p.LastHeard
				}
				x.Peers = append(x.Peers, y)
			}
			if !yield(x) {
				return
			}
		}
	}
}

// local returns a local address with the UDP port, if there is one.
func local(c *node.Tunnel, a netip.Addr) string {
	if port := c.AddrPort().Port(); port != 0 {
		return netip.AddrPortFrom(a, port).String()
	}
	return a.String()
}

func lost(st *vtep.Stats) map[string]uint64 {
	m := byReason(&st.Lost)
	if st.PeerLimit > 0 {
		m[frame.PeerLimit.String()] += st.PeerLimit
	}
	return m
}

func (s *server) getPort(w http.ResponseWriter, r *http.Request) error {
	cfg := s.n.Running()
	types, owners := map[string]string{}, map[string]string{}
	for _, c := range cfg.Ports {
		types[c.Name], owners[c.Name] = c.Type.String(), c.Owner
	}
	for _, c := range cfg.Tunnels {
		types[c.Name] = encap.Type(c.Type).String()
	}
	members, mtus := map[string][]api.Member{}, map[string]int{}
	for _, v := range s.n.Switch().VSIs() {
		for _, a := range v.Attachments() {
			p := a.PortName()
			if _, tunnel := a.Port().(*vtep.VTEP); tunnel {
				members[p] = append(members[p], api.Member{VNI: v.VNI(), Tag: a.Tag()})
			} else {
				members[p] = append(members[p], memberOf(v.VNI(), a.Tag()))
			}
			mtus[p] = a.Port().MTU(0)
		}
	}
	ports := []api.Port{}
	for _, p := range s.n.Switch().Stats().Ports {
		x := api.Port{
			Port: int(p.Port), Name: p.Name, Type: types[p.Name], MTU: mtus[p.Name], Members: members[p.Name],
			Rx: p.Rx, Accepted: p.Accepted, Tx: p.Tx,
			Forwarded: p.Forwarded, Replied: p.Replied, Consumed: p.Consumed, Flood: p.Flood,
			RxDrops: byReason(&p.RxDrops), TxDrops: byReason(&p.TxDrops), State: "up",
		}
		if x.Members == nil {
			x.Members = []api.Member{}
		}
		if p.Port == 0 {
			x.Type = "switch"
		}
		ports = append(ports, x)
	}
	for _, p := range s.n.Down() {
		ports = append(ports, down(p))
	}
	failed := s.n.TunnelsDown()
	for _, c := range cfg.Tunnels {
		err := failed[c.Name]
		if err == nil {
			continue
		}
		i := slices.IndexFunc(ports, func(p api.Port) bool { return p.Name == c.Name })
		if i < 0 {
			i = len(ports)
			ports = append(ports, tunnelDown(cfg, &c))
		}
		ports[i].State, ports[i].Error = "down", oneLine(err)
	}
	for _, name := range configured(cfg) {
		if !slices.ContainsFunc(ports, func(p api.Port) bool { return p.Name == name }) {
			ports = append(ports, api.Port{
				Port: -1, Name: name, Type: types[name], Members: []api.Member{}, RxDrops: map[string]uint64{}, TxDrops: map[string]uint64{}, State: "unused",
			})
		}
	}
	for i := range ports {
		ports[i].Owner = owners[ports[i].Name]
	}
	return list(w, slices.Values(ports))
}

// configured returns the names of tunnels and ports in their order.
func configured(cfg *node.Config) (names []string) {
	for _, c := range cfg.Tunnels {
		names = append(names, c.Name)
	}
	for _, c := range cfg.Ports {
		names = append(names, c.Name)
	}
	return names
}

func (s *server) getVNI(w http.ResponseWriter, r *http.Request) error {
	vsis, err := s.only(query(r), s.n.Segments())
	if err != nil {
		return err
	}
	return list(w, tallied(s.n, vsis))
}

func tallied(n *node.Node, vsis []*vswitch.VSI) iter.Seq[api.Segment] {
	return func(yield func(api.Segment) bool) {
		tunnels := n.Tunnels()
		for _, v := range vsis {
			st := v.Stats()
			x := api.Segment{VNI: st.VNI, Rx: st.Rx, Tx: st.Tx, Flood: st.Flood, Drops: byReason(&st.Drops), Members: []api.SegmentMember{}}
			for _, a := range st.Attachments {
				m := api.SegmentMember{Port: n.Switch().Name(frame.NewDest(a.Port, 0)), Rx: a.Rx, Tx: a.Tx}
				if tunnels[m.Port] == nil {
					m.VLAN, m.Service = a.Tag&^frame.ServiceTag, a.Tag&frame.ServiceTag != 0
				}
				x.Members = append(x.Members, m)
			}
			if !yield(x) {
				return
			}
		}
	}
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// said is oneLine, "" for nil.
func said(err error) string {
	if err == nil {
		return ""
	}
	return oneLine(err)
}

// memberOf returns a segment of a port, which is no tunnel, with the tag of the attachment.
func memberOf(vni frame.VNI, tag uint32) api.Member {
	return api.Member{VNI: vni, Tag: tag &^ frame.ServiceTag, Service: tag&frame.ServiceTag != 0}
}

// down returns what is known of a port that is down.
func down(p node.DownPort) api.Port {
	x := api.Port{
		Port: -1, Name: p.Name, Type: p.Type.String(), Members: []api.Member{}, RxDrops: map[string]uint64{}, TxDrops: map[string]uint64{},
		State: "down", Error: oneLine(p.Err), Since: &p.Since,
	}
	for _, vni := range slices.Sorted(maps.Keys(p.Tags)) {
		for _, tag := range p.Tags[vni] {
			x.Members = append(x.Members, memberOf(vni, tag))
		}
	}
	if !p.Next.IsZero() {
		x.Retry = &p.Next
	}
	return x
}

// tunnelDown is a tunnel of the configuration whose sockets have failed, with its segments.
func tunnelDown(cfg *node.Config, c *node.Tunnel) api.Port {
	tag := func(vni frame.VNI) uint32 {
		if c.Type.Bare() {
			return 0 // as when it is up: a single network
		}
		return uint32(vni)
	}
	x := api.Port{
		Port: -1, Name: c.Name, Type: c.Type.String(), Members: []api.Member{}, RxDrops: map[string]uint64{}, TxDrops: map[string]uint64{},
	}
	for i := range cfg.Segments {
		g := &cfg.Segments[i]
		if g.Tunnel == c.Name {
			x.Members = append(x.Members, api.Member{VNI: g.VNI, Tag: tag(g.VNI)})
		}
		for _, t := range g.Tunnels {
			if t.Tunnel == c.Name {
				x.Members = append(x.Members, api.Member{VNI: g.VNI, Tag: tag(cmp.Or(t.VNI, g.VNI))})
			}
		}
	}
	return x
}

func (s *server) getDrops(w http.ResponseWriter, r *http.Request) error {
	drops := []api.Drop{}
	add := func(where, direction string, reasons map[string]uint64) {
		for _, name := range slices.Sorted(maps.Keys(reasons)) {
			drops = append(drops, api.Drop{Where: where, Direction: direction, Reason: name, Frames: reasons[name]})
		}
	}
	total := s.n.Switch().Stats()
	if n := total.TooBig.Sent4 + total.TooBig.Sent6; n > 0 { // counted by ports as replied, not as drops
		add("switch", "rx", map[string]uint64{"too-big-answered": n})
	}
	for _, p := range total.Ports {
		add(p.Name, "rx", byReason(&p.RxDrops))
		add(p.Name, "tx", byReason(&p.TxDrops))
	}
	for v := range vteps(s.n) { // lost copies of frames that the switch counts as sent
		add(v.Name, "tx", v.Lost)
	}
	slices.SortStableFunc(drops, func(a, b api.Drop) int { return cmp.Compare(a.Where, b.Where) })
	return list(w, slices.Values(drops))
}

func (s *server) getStats(w http.ResponseWriter, r *http.Request) error {
	return reply(w, stats(s.n))
}

// stats returns the totals of all tunnels and ports.
func stats(n *node.Node) api.Stats {
	st := api.Stats{Drops: map[string]uint64{}, FDB: []api.FDBEntry{}, Neigh: []api.Neighbour{}, Peers: []api.Peer{}}
	add := func(reasons map[string]uint64) {
		for r, n := range reasons {
			st.Drops[r] += n
		}
	}
	tunnels := n.Tunnels()
	for v := range vteps(n) {
		st.Tx.Frames += v.Tx.Frames
		st.Tx.Bytes += v.Tx.Bytes
		st.Peers = append(st.Peers, v.Peers...)
		add(v.Lost)
	}
	total := n.Switch().Stats()
	st.TooBig = total.TooBig
	for _, p := range total.Ports {
		if tunnels[p.Name] != nil {
			st.Rx.Frames += p.Accepted.Frames
			st.Rx.Bytes += p.Accepted.Bytes
		}
		st.Flood.Broadcast += p.Flood.Broadcast
		st.Flood.Multicast += p.Flood.Multicast
		st.Flood.Unknown += p.Flood.Unknown
		add(byReason(&p.RxDrops))
		add(byReason(&p.TxDrops))
	}
	st.FDB = slices.AppendSeq(st.FDB, entries(n, n.Switch().VSIs(), ""))
	st.Neigh = slices.AppendSeq(st.Neigh, neighbours(n, n.Switch().VSIs()))
	return st
}

func statsLine(n *node.Node) string {
	line, _ := json.Marshal(stats(n)) // of plain numbers and strings: cannot fail
	return "stats " + string(line)
}
