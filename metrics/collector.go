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
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// Config says what a [Collector] shows. The zero value works, and shows nothing.
type Config struct {
	// Switch is shown with its ports, VSIs and FDBs, those that are there at each scrape. nil =
	// none.
	Switch *vswitch.Switch

	// Sources returns what else is there now; nil = nothing. It is called once a scrape, by
	// several goroutines at once if there are several scrapes. What it returned is read until
	// the scrape ends: maps that change must be copies.
	Sources func() Sources

	// NoPeers leaves out the series of each single peer. How many there are, and what all of
	// them were sent, stays.
	NoPeers bool
}

// Sources is what a node has around its switch. Keys are labels; nil values are passed over,
// as are things that are closed: they show their last counts until they are left out.
type Sources struct {
	VTEPs      map[string]*vtep.VTEP
	Underlays  map[string]Underlay
	Neighbours map[frame.VNI]*arp.Responder // one of those that share a table: they count together
	Interfaces map[frame.VNI]*l3.Interface  // by the segment they are on
	Packets    map[string]*port.Packet
	Buffers    map[string]*port.Buffered
	Captures   map[string]*capture.Capture
	Policies   map[string]*policy.Policy
	Guards     map[frame.VNI]map[string]*policy.Guard // by segment and port
}

// An Underlay is what a VTEP stands on: one of those of package underlay.
type Underlay interface{ Stats() underlay.Stats }

// A Collector turns the counters of a switch into samples, when it is asked. It satisfies
// prometheus.Collector and may be used by several goroutines at once.
type Collector struct {
	cfg        Config
	all        families
	ports      portFamilies
	vsis       vsiFamilies
	vteps      vtepFamilies
	underlays  underlayFamilies
	neighbours neighbourFamilies
	gateways   gatewayFamilies
	extras     extraFamilies
	policies   policyFamilies
}

// New returns a Collector, to be registered in a prometheus.Registry.
func New(cfg Config) *Collector {
	c := &Collector{cfg: cfg}
	c.ports.describe(&c.all)
	c.vsis.describe(&c.all)
	c.vteps.describe(&c.all)
	c.underlays.describe(&c.all)
	c.neighbours.describe(&c.all)
	c.gateways.describe(&c.all)
	c.extras.describe(&c.all)
	c.policies.describe(&c.all)
	return c
}

// Describe sends the description of every family, whether there is anything to show in it
// or not.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.all {
		ch <- d
	}
}

// Collect takes a snapshot of everything and sends its samples. Snapshots are taken one after
// the other, under traffic: what two of them count together may differ by what has passed
// in between.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	if c.cfg.Switch != nil {
		c.collectSwitch(ch, c.cfg.Switch.Stats())
	}
	if c.cfg.Sources != nil {
		s := c.cfg.Sources()
		c.collectTunnels(ch, &s)
		c.collectNetworks(ch, &s)
		c.collectExtras(ch, &s)
		c.collectPolicies(ch, &s)
	}
}

func (c *Collector) collectSwitch(ch chan<- prometheus.Metric, s vswitch.Stats) {
	put(ch, c.ports.eventsLost, s.EventsLost)
	c.gateways.collectTooBig(ch, s.TooBig)
	for i := range s.Ports {
		c.ports.collect(ch, &s.Ports[i])
	}
	for i := range s.VSIs {
		c.vsis.collect(ch, &s.VSIs[i])
	}
}

func (c *Collector) collectPolicies(ch chan<- prometheus.Metric, s *Sources) {
	for name, p := range s.Policies {
		if p != nil {
			c.policies.collect(ch, text(name), p.Stats())
		}
	}
	for vni, ports := range s.Guards {
		for port, g := range ports {
			if g != nil {
				c.policies.collectGuard(ch, text(port), vni.String(), g.Stats())
			}
		}
	}
}

func (c *Collector) collectTunnels(ch chan<- prometheus.Metric, s *Sources) {
	for name, v := range s.VTEPs {
		if v != nil {
			c.vteps.collect(ch, text(name), v.Stats(), !c.cfg.NoPeers)
		}
	}
	for name, u := range s.Underlays {
		if !absent.Is(u) {
			c.underlays.collect(ch, text(name), u.Stats())
		}
	}
}

func (c *Collector) collectNetworks(ch chan<- prometheus.Metric, s *Sources) {
	for vni, r := range s.Neighbours {
		if r != nil {
			c.neighbours.collect(ch, vni.String(), r.Stats())
		}
	}
	for vni, i := range s.Interfaces {
		if i != nil {
			c.gateways.collect(ch, text(i.VRF().Name()), vni.String(), i.Stats())
		}
	}
}

func (c *Collector) collectExtras(ch chan<- prometheus.Metric, s *Sources) {
	for name, p := range s.Packets {
		if p != nil {
			c.extras.collectPacket(ch, text(name), p.Stats())
		}
	}
	for name, b := range s.Buffers {
		if b != nil {
			c.extras.collectBuffered(ch, text(name), b.Stats())
		}
	}
	for name, p := range s.Captures {
		if p != nil {
			c.extras.collectCapture(ch, text(name), p.Stats())
		}
	}
}
