package node

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
)

// A checker finds contradictions. What it knows of parts by name is of those that are
// named well.
type checker struct {
	*source
	unread   map[string]bool // source.wrong of the text: keys whose values are not what it says
	c        *Config
	begun    bool // calls make it step by step: what has no gateway yet may get one
	tunnels  map[string]*Tunnel
	ports    map[string]*Port
	policies map[string]bool
	segments map[frame.VNI]*Segment
	vrfs     map[string]bool
	used     map[string]string      // where a port is a member: by port and VLAN
	nets     map[inVRF]frame.VNI    // that gateways have: their networks and addresses
	networks map[inTunnel]frame.VNI // that segments have
}

func (c *Config) check(s *source, begun bool) {
	k := &checker{
		source: s, unread: maps.Clone(s.wrong), c: c, begun: begun, tunnels: map[string]*Tunnel{}, ports: map[string]*Port{}, policies: map[string]bool{},
		segments: map[frame.VNI]*Segment{}, vrfs: map[string]bool{}, used: map[string]string{},
		nets: map[inVRF]frame.VNI{}, networks: map[inTunnel]frame.VNI{},
	}
	locals := map[string]string{}
	for i := range c.Tunnels {
		k.tunnel(fmt.Sprintf("tunnels[%d]", i), &c.Tunnels[i], locals)
	}
	for i := range c.Ports {
		k.port(fmt.Sprintf("ports[%d]", i), &c.Ports[i])
	}
	for i := range c.Policies {
		k.policy(fmt.Sprintf("policies[%d]", i), &c.Policies[i])
	}
	for i := range c.VRFs {
		key := fmt.Sprintf("vrfs[%d].name", i)
		if n := c.VRFs[i].Name; k.named(key, n) {
			if k.vrfs[n] {
				k.fail(key, "%q is there twice", n)
			}
			k.vrfs[n] = true
		}
	}
	for i := range c.Segments {
		key, g := fmt.Sprintf("segments[%d]", i), &c.Segments[i]
		if !g.VNI.Valid() {
			k.fail(key+".vni", "%d; allowed are 0 to %d", g.VNI, frame.MaxVNI)
		} else if k.segments[g.VNI] != nil {
			k.fail(key+".vni", "%d is there twice", g.VNI)
		} else {
			k.segments[g.VNI] = g
		}
	}
	for i := range c.Segments {
		k.segment(fmt.Sprintf("segments[%d]", i), &c.Segments[i])
	}
	k.gateways()
	for i := range c.VRFs {
		k.vrf(fmt.Sprintf("vrfs[%d]", i), &c.VRFs[i])
	}
	k.asks("", *c, c.Config.Check)
	k.asks("gateway", c.Gateway, c.Gateway.Check)
	k.asks("capture", c.Capture, c.Capture.Check)
	if dir := filepath.Dir(c.Control.Socket); len(dir) > maxSocket || len(c.Control.Socket) > maxSocket+17 {
		k.fail("control.socket", "longer than the system allows: its folder may have %d bytes, and all of it %d", maxSocket, maxSocket+17)
	}
	if m := c.Control.Mode; m != "" {
		if n, err := strconv.ParseUint(m, 8, 12); err != nil || n > 0o777 {
			k.fail("control.mode", `%q; allowed are permissions in octal, such as "0600"`, m)
		}
	}
}

// maxSocket leaves room in 107 bytes for a folder in the socket's, in which it is made.
const maxSocket = 90

func (k *checker) atLeast(key string, n int) {
	if n < 0 {
		k.fail(key, "%d is negative", n)
	}
}

// named reports whether there is a name.
func (k *checker) named(key, name string) bool {
	if name == "" {
		k.fail(key, "a name is needed")
	}
	return name != ""
}

// misplaced notes which of the fields that are left belong to one of the structs in of.
func (k *checker) misplaced(key string, at any, left []string, of []any, text string) {
	for _, name := range left {
		for _, x := range of {
			if _, ok := reflect.TypeOf(x).FieldByName(name); !ok {
				continue
			}
			if at := keyOf(reflect.TypeOf(at), name); at != "" {
				k.fail(join(key, at), "%s", text)
			}
		}
	}
}

func (k *checker) port(key string, p *Port) {
	if k.named(key+".name", p.Name) {
		if k.ports[p.Name] != nil {
			k.fail(key+".name", "%q is there twice", p.Name)
		}
		if len(p.Name) > 15 && p.Type != PortOwn {
			k.fail(key+".name", "%q is longer than 15 bytes", p.Name)
		}
		k.ports[p.Name] = p
	}
	if name := p.Name; p.Type != PortOwn && (name == "." || name == ".." || strings.ContainsAny(name, "/:% \t\n\v\f\r\x00")) {
		k.fail(key+".name", "%q is no name of a device", name)
	}
	cfg, left := convert[port.PacketConfig](p)
	check := cfg.Check
	switch p.Type {
	case PortTAP, PortTUN:
		_, left = convert[port.DeviceConfig](p)
		check = func() error { return p.Check(p.Type == PortTUN) }
	case PortOwn:
		_, left = convert[struct{ IP bool }](p)
		check = func() error { return nil }
	}
	k.misplaced(key, *p, left, []any{port.DeviceConfig{}, port.PacketConfig{}, struct{ IP bool }{}}, "a port of type "+p.Type.String()+" has no such setting")
	k.asks(key, *p, check)
}

func (k *checker) policy(key string, p *Policy) {
	if k.named(key+".name", p.Name) {
		if k.policies[p.Name] {
			k.fail(key+".name", "%q is there twice", p.Name)
		}
		k.policies[p.Name] = true
	}
	k.asks(key, *p, p.Check)
}

func (k *checker) segment(key string, g *Segment) {
	k.inTunnels(key, g)
	for i := range g.Members {
		k.member(fmt.Sprintf("%s.members[%d]", key, i), g, &g.Members[i])
	}
	k.atLeast(key+".maxMACs", g.MaxMACs)
	macs := map[frame.MAC]bool{}
	for i := range g.FDB {
		e := &g.FDB[i]
		k.entry(fmt.Sprintf("%s.fdb[%d]", key, i), g, e)
		if macs[e.MAC] {
			k.fail(fmt.Sprintf("%s.fdb[%d].mac", key, i), "%v is there twice", e.MAC)
		}
		macs[e.MAC] = true
	}
	if n := g.Neighbours; n != nil {
		ips := map[netip.Addr]bool{}
		for i, x := range n.Static {
			at := fmt.Sprintf("%s.neighbours.static[%d]", key, i)
			if err := g.neighbour(x.IP); err != nil {
				k.fail(at+".ip", "%v %v", x.IP, err)
			} else if ips[x.IP] {
				k.fail(at+".ip", "%v is there twice", x.IP)
			}
			if ips[x.IP] = true; x.MAC.IsZero() || x.MAC.IsGroup() {
				k.fail(at+".mac", "the MAC of one host is needed")
			}
		}
		k.neighbourMode(key+".neighbours.mode", g, n.Mode)
		k.atLeast(key+".neighbours.limit", n.Limit)
		k.atLeast(key+".neighbours.perDest", n.PerDest)
	}
	if g.Policy != "" && !k.policies[g.Policy] {
		k.fail(key+".policy", "there is no policy %q", g.Policy)
	}
	k.segmentSettings(key, g)
}

// neighbourMode checks that a segment has what a mode needs.
func (k *checker) neighbourMode(key string, g *Segment, mode arp.Mode) {
	if mode == arp.Proxy && (g.Gateway == nil || len(g.Gateway.Addresses) == 0) {
		k.fail(key, "proxy answers with the gateway's MAC: a gateway with addresses is needed")
	}
}

// neighbour says why an address is not that of a host in the segment.
func (g *Segment) neighbour(ip netip.Addr) error {
	if g.Gateway != nil {
		for _, p := range g.Gateway.Addresses {
			if err := hostaddr.In(p, ip); err != nil {
				return err
			}
		}
	}
	return hostaddr.Neighbour(ip)
}

func (k *checker) member(key string, g *Segment, m *Member) {
	p := k.ports[m.Port]
	if p == nil {
		k.fail(key+".port", "there is no port %q", m.Port)
		return
	}
	if m.VLAN < 0 || m.VLAN > 4094 {
		k.fail(key+".vlan", "%d; allowed are 1 to 4094, and 0 for untagged", m.VLAN)
	}
	if p.bare() {
		if g.Gateway == nil && !g.Wire.IsValid() && !k.begun {
			k.fail(key+".port", "%q carries IP without Ethernet: a gateway or a wire is needed", m.Port)
		}
		if len(g.Members) > 1 || len(g.in()) > 0 && !g.Wire.IsValid() {
			k.fail(key+".port", "%q carries IP without Ethernet: it is alone in its segment", m.Port)
		}
		if m.VLAN != 0 {
			k.fail(key+".vlan", "%q carries IP without Ethernet", m.Port)
		}
		if m.Locked {
			k.fail(key+".locked", "%q carries IP without Ethernet", m.Port)
		}
	}
	here := strconv.Itoa(int(g.VNI))
	for _, what := range []string{fmt.Sprintf("%s vlan %d", m.Port, m.VLAN), fmt.Sprintf("%s in %s", m.Port, here)} {
		if at := k.used[what]; at != "" {
			k.fail(key+".port", "%s is in VNI %s already", strings.TrimSuffix(what, " in "+here), at)
			break
		}
		k.used[what] = here
	}
	k.atLeast(key+".maxMACs", m.MaxMACs)
	if m.Guard != nil {
		k.asks(key+".guard", *m.Guard, m.Guard.Check)
	}
	if m.Policy != "" && !k.policies[m.Policy] {
		k.fail(key+".policy", "there is no policy %q", m.Policy)
	}
	if m.MSSClamp != 0 {
		if _, err := l3.NewMSSClamp(m.MSSClamp); err != nil {
			k.fail(key+".mssClamp", "%d, allowed are 68 to 65535, and 0 for none", m.MSSClamp)
		}
	}
	switch {
	case m.NeighbourMode == nil:
	case p.bare():
		k.fail(key+".neighbourMode", "%q carries IP without Ethernet", m.Port)
	case g.Neighbours == nil && !g.ethernet():
		k.fail(key+".neighbourMode", "the segment has no neighbours, nor a gateway with a MAC")
	default:
		k.neighbourMode(key+".neighbourMode", g, *m.NeighbourMode)
	}
	if m.Isolated && m.Group != 0 {
		k.fail(key+".group", "%d: an isolated member has a group already", m.Group)
	}
}

func (k *checker) entry(key string, g *Segment, e *FDB) {
	places := 0
	for _, is := range []bool{e.Remote.IsValid(), len(e.Remotes) > 0, e.Port != "", e.Filter} {
		if is {
			places++
		}
	}
	far := e.Remote.IsValid() || len(e.Remotes) > 0
	switch w := g.Gateway; {
	case e.MAC.IsZero():
		k.fail(key+".mac", "a MAC is needed")
	case w != nil && (e.MAC == w.MAC || e.MAC == w.Own):
		k.fail(key+".mac", "%v is the gateway's", e.MAC)
	case e.MAC.IsGroup() && len(e.Remotes) > 0:
		k.fail(key+".mac", "%v is a multicast group: it goes to one of remote, port and filter", e.MAC)
	}
	switch {
	case places != 1:
		k.fail(key, "one of remote, remotes, port and filter is needed")
	case far && len(g.in()) == 0 && e.Remote.IsValid():
		k.fail(key+".remote", "the segment is in no tunnel")
	case far && len(g.in()) == 0:
		k.fail(key+".remotes", "the segment is in no tunnel")
	case far:
		k.remotes(key, k.tunnelOf(key, g, e.Tunnel), e)
	case e.Tunnel != "":
		k.fail(key+".tunnel", "is for remote and remotes")
	case e.VNI != 0:
		k.fail(key+".vni", "is for remote and remotes")
	case e.Port != "" && g.member(e.Port) == nil:
		k.fail(key+".port", "%q is no member of the segment", e.Port)
	}
}

// remotes checks the peers of an entry.
func (k *checker) remotes(key string, t *Tunnel, e *FDB) {
	if e.Remote.IsValid() {
		k.remote(key+".remote", t, e.Remote)
	}
	if len(e.Remotes) == 1 {
		k.fail(key+".remotes", "%v is alone: it belongs in remote", e.Remotes[0])
	}
	for i, a := range e.Remotes {
		at := fmt.Sprintf("%s.remotes[%d]", key, i)
		if k.remote(at, t, a); slices.Contains(e.Remotes[:i], a) {
			k.fail(at, "%v is there twice", a)
		}
	}
	switch {
	case !e.VNI.Valid():
		k.fail(key+".vni", "%d; allowed are 1 to %d, and 0 for what the tunnel calls it here", e.VNI, frame.MaxVNI)
	case e.VNI != 0 && t != nil && t.Type == encap.TypeIPIP:
		k.fail(key+".vni", "%d: IP-in-IP has none", e.VNI)
	}
}
