// Package file is the configuration file of vxswitchd: that of a node, and a section for each control plane that the program runs.
// A section is a pointer in [Config] to the settings of its package, which have a Check. Package node knows nothing of sections.
package file

import (
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/evpn"
	"github.com/vxswitch/vxswitch/flannel/daemon"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb"
	"github.com/vxswitch/vxswitch/setting/conf"
)

//go:generate go run ../settings ../../..

// Config is a complete file.
//
// docs/settings.md lists all fields in the order of a file.
type Config struct {
	node.Config

	Flannel *daemon.Config `json:"flannel,omitzero"` // makes the node one of a flannel network; default none
	EVPN    *evpn.Config   `json:"evpn,omitzero"`    // makes the node a VTEP of EVPN; default none
	BGP     *bgp.Config    `json:"bgp,omitzero"`     // has the node announce blocks of addresses by BGP, and makes routes of those of other nodes; default none
	Calico  *calico.Config `json:"calico,omitzero"`  // makes the node a member of a cluster of calico/node whose datastore is etcd; default none
	OVSDB   *ovsdb.Config  `json:"ovsdb,omitzero"`   // makes the node a switch of an OVSDB database with the schema hardware_vtep; default none

	Discovery *Discovery `json:"discovery,omitzero"` // has the node and others like it find each other and their hosts; default none
}

// Parse reads a file. The error is of type [setting.Errors], each with its position in the text and its key.
func Parse(text []byte) (*Config, error) {
	c := new(Config)
	r, err := node.ParseIn(text, c, &c.Config)
	if err == nil {
		c.sections(r)
		err = r.Err()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Check returns the errors in a configuration as [setting.Errors] without positions.
func (c *Config) Check() error {
	r := new(conf.Report)
	r.Ask("", c.Config, c.Config.Check)
	c.sections(r)
	return r.Err()
}

// sections adds the errors in sections to a report.
func (c *Config) sections(r *conf.Report) {
	if e := c.EVPN; e != nil && !r.Told("evpn") {
		r.Ask("evpn", *e, e.Check)
		c.named(r, e)
		c.tellable(r)
	}
	if b := c.BGP; b != nil && !r.Told("bgp") {
		r.Ask("bgp", *b, b.Check)
		c.routed(r, b)
	}
	if k := c.Calico; k != nil && !r.Told("calico") {
		r.Ask("calico", *k, k.Check)
		c.member(r, k)
	}
	if o := c.OVSDB; o != nil && !r.Told("ovsdb") {
		r.Ask("ovsdb", *o, o.Check)
		if i, ok := c.tunnelOf(r, "ovsdb.tunnel", o.Tunnel); ok && c.Tunnels[i].Type != encap.TypeVXLAN {
			r.Fail("ovsdb.tunnel", o.Tunnel, "tunnels[%d] must have the type vxlan", i)
		}
	}
	if d := c.Discovery; d != nil && !r.Told("discovery") {
		r.Ask("discovery", *d, d.Check)
		c.discovered(r, d)
	}
	if f := c.Flannel; f != nil && !r.Told("flannel") {
		r.Ask("flannel", *f, f.Check)
		if f.Mode == daemon.L3 && !r.Failed("flannel.pods") {
			c.pods(r, f)
			if f.Direct != 0 && !r.Failed("flannel.direct") && !slices.ContainsFunc(c.Segments, func(s node.Segment) bool { return s.VNI == f.Direct }) {
				r.Fail("flannel.direct", f.Direct, "no such segment; it has a gateway in the VRF of the pods, with the public address")
			}
		}
	}
}

// named adds errors for settings of segments, ports and VRFs that are not there.
func (c *Config) named(r *conf.Report, e *evpn.Config) {
	for i, x := range e.Segments {
		at := fmt.Sprintf("evpn.segments[%d].vni", i)
		if !r.Failed(at) && !slices.ContainsFunc(c.Segments, func(s node.Segment) bool { return s.VNI == x.VNI }) {
			r.Fail(at, x.VNI, "no such segment")
		}
	}
	for i, x := range e.EthernetSegments {
		at := fmt.Sprintf("evpn.ethernetSegments[%d].port", i)
		if !r.Failed(at) && !slices.ContainsFunc(c.Ports, func(p node.Port) bool { return p.Name == x.Port }) {
			r.Fail(at, x.Port, "no such port")
		}
	}
	for i, x := range e.VRFs {
		c.vrf(r, fmt.Sprintf("evpn.vrfs[%d].name", i), x.Name)
	}
}

// tellable adds errors for what EVPN cannot tell peers: two L3VNIs of a VRF, and a VNI that is another one in the tunnel.
func (c *Config) tellable(r *conf.Report) {
	l3vnis := map[string]int{}
	for i, s := range c.Segments {
		at := fmt.Sprintf("segments[%d]", i)
		tunnel, ok := c.vxlan(&s)
		if !ok || r.Failed(at) {
			continue
		}
		if t := s.Tunnels; len(t) > 0 && t[tunnel].VNI != 0 && t[tunnel].VNI != s.VNI {
			r.Fail(fmt.Sprintf("%s.tunnels[%d].vni", at, tunnel), t[tunnel].VNI, "the section evpn requires the VNI of the segment, %d, which is what peers are told", s.VNI)
		}
		if g := s.Gateway; g == nil || len(g.Addresses) > 0 {
			continue
		} else if first, ok := l3vnis[g.VRF]; !ok {
			l3vnis[g.VRF] = i
		} else {
			r.Fail(at+".gateway", nil, "without addresses it is the L3VNI of the VRF %q for the section evpn, which is that of segments[%d] already: one is allowed", g.VRF, first)
		}
	}
}

// tunnelsOf returns the names of the tunnels of a segment, in the order of its list if it has one.
func tunnelsOf(s *node.Segment) (names []string) {
	for _, t := range s.Tunnels {
		names = append(names, t.Tunnel)
	}
	if names == nil {
		names = []string{s.Tunnel}
	}
	return names
}

// vxlan returns the place among the tunnels of a segment of the first that is VXLAN.
func (c *Config) vxlan(s *node.Segment) (place int, ok bool) {
	place = slices.IndexFunc(tunnelsOf(s), func(name string) bool {
		return slices.ContainsFunc(c.Tunnels, func(t node.Tunnel) bool { return t.Name == name && t.Type == encap.TypeVXLAN })
	})
	return place, place >= 0
}

// pods adds an error unless the segment of the pods is there and can get a gateway.
func (c *Config) pods(r *conf.Report, f *daemon.Config) {
	i := slices.IndexFunc(c.Segments, func(s node.Segment) bool { return s.VNI == f.Pods })
	if i < 0 {
		r.Fail("flannel.pods", f.Pods, `no such segment: add {"vni": %v} to segments`, f.Pods)
	} else if c.Segments[i].Gateway != nil {
		r.Fail("flannel.pods", f.Pods, "segments[%d] has a gateway: leave it out, the section makes that of the pods", i)
	}
}

// MarshalJSON writes what [Parse] reads.
func (c Config) MarshalJSON() ([]byte, error) { return conf.Write(c) }

// UnmarshalJSON reads what MarshalJSON writes, as [Parse] does.
func (c *Config) UnmarshalJSON(text []byte) error {
	x, err := Parse(text)
	if err == nil {
		*c = *x
	}
	return err
}
