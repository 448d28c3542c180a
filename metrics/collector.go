package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// Config configures a [Collector]. The zero value works, and exports nothing.
type Config struct {
	// Switch is exported with the ports, VSIs and FDBs that it has at the scrape; nil = none.
	Switch *vswitch.Switch

	// Sources returns everything else to export; nil = nothing. It is called once per scrape;
	// concurrent scrapes call it concurrently. The scrape reads the result until it ends: return
	// copies of maps that change.
	Sources func() Sources

	// NoPeers omits the series of single peers, not the number of peers and their totals.
	NoPeers bool
}

// Sources has the parts of a node around its switch. Keys are labels. nil values are ignored;
// closed parts keep their last counts until they are left out.
type Sources struct {
	VTEPs      map[string]*vtep.VTEP
	Underlays  map[string]Underlay
	Neighbours map[frame.VNI]*arp.Responder // one of those that share a table: they count together
	Snoopers   map[frame.VNI]*snoop.Snooper
	Interfaces map[frame.VNI]*l3.Interface // by the segment they are on
	Packets    map[string]*port.Packet
	Buffers    map[string]*port.Buffered
	Captures   map[string]*capture.Capture
	Policies   map[string]*policy.Policy
	Guards     map[frame.VNI]map[string]*policy.Guard // by segment and port
	Ports      map[string]bool                        // false for a port that should run and does not, as node.Node.Down says
}

// An Underlay is an underlay of a VTEP, such as underlay.UDP.
type Underlay interface{ Stats() underlay.Stats }

// A Collector exports the counters of a switch. It implements prometheus.Collector, and is safe
// for concurrent use.
type Collector struct {
	cfg   Config
	descs map[string]*prometheus.Desc
}

// New returns a Collector for a prometheus.Registry. A nil cfg means the zero value. It owns
// nothing: the caller closes what cfg refers to.
func New(cfg *Config) *Collector {
	c := &Collector{descs: map[string]*prometheus.Desc{}}
	if cfg != nil {
		c.cfg = *cfg
	}
	s := c.sink(nil)
	s.ofSwitch(vswitch.Stats{Ports: make([]vswitch.PortStats, 1), VSIs: []vswitch.VSIStats{{Attachments: make([]vswitch.AttachmentStats, 1)}}})
	s.vtep("", vtep.Stats{}, false)
	s.underlay("", underlay.Stats{})
	s.neighbours("", arp.Stats{})
	s.multicast("", snoop.Stats{})
	s.gateway("", "", l3.InterfaceStats{})
	s.packet("", port.PacketStats{})
	s.buffered("", port.BufferedStats{})
	s.capture("", capture.Stats{})
	s.policy("", policy.Stats{})
	s.guard("", "", policy.GuardStats{})
	s.up("", false)
	return c
}

func (c *Collector) sink(to chan<- prometheus.Metric) sink { return sink{descs: c.descs, to: to} }

// Describe sends the descriptions of all families, including empty ones.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect takes snapshots of everything and sends their samples. It takes them one after the
// other, under traffic, so that sums over several may not match exactly.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	s := c.sink(ch)
	if c.cfg.Switch != nil {
		s.ofSwitch(c.cfg.Switch.Stats())
	}
	if c.cfg.Sources != nil {
		s.sources(c.cfg.Sources(), !c.cfg.NoPeers)
	}
}

func (s sink) ofSwitch(st vswitch.Stats) {
	s.counter("events_lost", "Events of the switch that did not fit the queue of a reader.")(st.EventsLost)
	s.tooBig(st.TooBig)
	ports := map[uint16]string{}
	for i := range st.Ports {
		s.port(&st.Ports[i])
		ports[st.Ports[i].Port] = st.Ports[i].Name
	}
	for i := range st.VSIs {
		s.vsi(&st.VSIs[i], ports)
	}
}

func (s sink) sources(x Sources, peers bool) {
	each(x.VTEPs, func(name string, v *vtep.VTEP) { s.vtep(text(name), v.Stats(), peers) })
	for name, u := range x.Underlays {
		if !absent.Is(u) {
			s.underlay(text(name), u.Stats())
		}
	}
	each(x.Neighbours, func(vni frame.VNI, r *arp.Responder) { s.neighbours(vni.String(), r.Stats()) })
	each(x.Snoopers, func(vni frame.VNI, m *snoop.Snooper) { s.multicast(vni.String(), m.Stats()) })
	each(x.Interfaces, func(vni frame.VNI, i *l3.Interface) { s.gateway(text(i.VRF().Name()), vni.String(), i.Stats()) })
	each(x.Packets, func(name string, p *port.Packet) { s.packet(text(name), p.Stats()) })
	each(x.Buffers, func(name string, b *port.Buffered) { s.buffered(text(name), b.Stats()) })
	each(x.Captures, func(name string, c *capture.Capture) { s.capture(text(name), c.Stats()) })
	each(x.Policies, func(name string, p *policy.Policy) { s.policy(text(name), p.Stats()) })
	for name, up := range x.Ports {
		s.up(text(name), up)
	}
	for vni, ports := range x.Guards {
		each(ports, func(port string, g *policy.Guard) { s.guard(text(port), vni.String(), g.Stats()) })
	}
}

// each calls show for the entries that are not nil.
func each[K comparable, V any](m map[K]*V, show func(K, *V)) {
	for k, v := range m {
		if v != nil {
			show(k, v)
		}
	}
}
