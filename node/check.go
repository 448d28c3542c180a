package node

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A checker finds errors in a configuration.
type checker struct {
	*conf.Report
	file  bool // the configuration is from a file
	begun bool // built by calls: a segment may get its gateway later

	wanted
	claimed map[string]string // owners of addresses, VLANs and the like that must be unique
}

// check returns the errors of the report and of the configuration.
func (k checker) check(c *Config) error {
	k.Report, k.wanted, k.claimed = cmp.Or(k.Report, new(conf.Report)), index(c), map[string]string{}
	each(k.Report, "tunnels", c.Tunnels, k.tunnel)
	each(k.Report, "ports", c.Ports, k.port)
	each(k.Report, "policies", c.Policies, k.policy)
	each(k.Report, "segments", c.Segments, k.segment)
	each(k.Report, "vrfs", c.VRFs, k.vrf)
	k.Ask("", *c, c.Config.Check)
	k.Ask("gateway", c.Gateway, c.Gateway.Check)
	k.Ask("capture", c.Capture, c.Capture.Check)
	if c.Datapath > DatapathAuto {
		k.Want("datapath", uint8(c.Datapath), "user, kernel or auto")
	}
	if dir := filepath.Dir(c.Control.Socket); len(dir) > maxSocket || len(c.Control.Socket) > maxSocket+17 {
		k.Fail("control.socket", nil, "path too long: at most %d bytes, %d of them for its directory, are allowed", maxSocket+17, maxSocket)
	}
	if m := c.Control.Mode; m != "" && c.Control.Socket == "" {
		k.Fail("control.mode", nil, "requires socket")
	} else if m != "" {
		if n, err := strconv.ParseUint(m, 8, 12); err != nil || n > 0o777 {
			k.Want("control.mode", m, `permissions in octal such as "0600"`)
		}
	}
	return k.Err()
}

// maxSocket leaves room for a temporary directory in the 107 bytes of a socket path.
const maxSocket = 90

// each checks the elements of the list at a key until the report is full.
func each[T any](r *conf.Report, key string, list []T, check func(key string, x *T)) {
	for i := 0; i < len(list) && !r.Full(); i++ {
		check(fmt.Sprintf("%s[%d]", key, i), &list[i])
	}
}

// once reports a duplicate in a list.
func once[T comparable](k *checker, key string, seen map[T]bool, v T) {
	if seen[v] {
		k.Fail(key, v, "duplicate")
	}
	seen[v] = true
}

// named checks a name; first is false for a duplicate.
func (k *checker) named(key, name string, first bool) {
	switch {
	case name == "":
		k.Fail(key, nil, "required")
	case !printable(name):
		k.Want(key, name, "printable characters")
	case !first:
		k.Fail(key, name, "duplicate")
	}
}

// printable reports whether a name can be shown in a line of text. It is what package control asks of names in rows.
func printable(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// claim returns the owner of something that must be unique. Without an owner, who becomes the owner.
func (k *checker) claim(what, who string) (other string) {
	if other = k.claimed[what]; other == "" {
		k.claimed[what] = who
	}
	return other
}

// misplaced reports settings of x that its kind, is, does not have but others do. The keys are those of at.
func (k *checker) misplaced(key string, at, x, is any, others []any, text string) {
	if k.Failed(key+".type") || k.Failed(key+".underlay") {
		return // the kind is unknown
	}
	has := func(a any, field string) bool {
		_, ok := reflect.TypeOf(a).FieldByName(field)
		return ok
	}
	v := reflect.ValueOf(x)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous || v.FieldByIndex(f.Index).IsZero() || has(is, f.Name) {
			continue
		}
		name := conf.Key(reflect.TypeOf(at), f.Name)
		if name != "" && slices.ContainsFunc(others, func(other any) bool { return has(other, f.Name) }) {
			k.Fail(conf.Join(key, name), nil, "%s", text)
		}
	}
}

func (k *checker) port(key string, p *Port) {
	k.named(key+".name", p.Name, k.ports[p.Name] == p)
	if p.Type > PortOwn {
		k.Want(key+".type", uint8(p.Type), "%s", setting.Or(portWords...))
		return
	}
	switch name := p.Name; {
	case p.Type == PortOwn && k.file:
		k.Want(key+".type", p.Type, "%s", setting.Or(portWords[:PortOwn]...))
	case p.Type == PortOwn:
	case len(name) > 15:
		k.Want(key+".name", name, "at most 15 bytes")
	case name == "." || name == ".." || strings.ContainsAny(name, "/:% \t\n\v\f\r\x00"):
		k.Want(key+".name", name, "a device name, without spaces, slashes, colons or percent signs")
	}
	switch {
	case !printable(p.Owner):
		k.Want(key+".owner", p.Owner, "printable characters")
	case p.Owner != "" && p.Type == PortOwn:
		k.Fail(key+".owner", nil, "a port of type own is the program's own")
	}
	cfg, own := convert[port.PacketConfig](p), struct{ IP bool }{}
	is, check := any(*cfg), cfg.Check
	switch p.Type {
	case PortTAP, PortTUN, PortVeth, PortInterface:
		is, check = p.DeviceConfig, func() error { return p.Check(p.Type == PortTUN) }
	case PortOwn:
		is, check = own, func() error { return nil }
	}
	others := []any{port.DeviceConfig{}, port.PacketConfig{}, own}
	k.misplaced(key, *p, *p, is, others, "a port of type "+p.Type.String()+" does not have this setting")
	k.Ask(key, *p, check)
}

func (k *checker) policy(key string, p *Policy) {
	k.named(key+".name", p.Name, k.policies[p.Name] == p)
	k.Ask(key, *p, p.Check)
}

// policyName checks the name of a policy of a segment, its gateway or a member, "" for none.
func (k *checker) policyName(key, name string, g *Segment) {
	p := k.policies[name]
	switch {
	case name == "":
	case p == nil:
		k.Want(key, name, "the name of a policy")
	case p.Routed && g.Gateway != nil:
		vrf := g.Gateway.VRF
		if other, again := k.claimed["routed by "+name]; again && other != vrf {
			k.Fail(key, name, "is a policy of VRF %s, too: with routed, their flows would be one", other)
		}
		k.claimed["routed by "+name] = vrf
	}
}

func (k *checker) segment(key string, g *Segment) {
	k.Ask(key, *g, g.VSIConfig.Check)
	k.Ask(key, *g, g.Marking.Check)
	switch {
	case !g.VNI.Valid():
		k.Want(key+".vni", g.VNI, "0 to %d", frame.MaxVNI)
	case k.segments[g.VNI] != g:
		k.Fail(key+".vni", g.VNI, "duplicate")
	}
	k.inTunnels(key, g)
	k.neighbours(key+".neighbours", g)
	k.multicast(key, g)
	each(k.Report, key+".members", g.Members, func(at string, m *Member) {
		k.member(at, g, m)
		k.memberMode(at+".neighbourMode", key, g, m)
	})
	macs := map[frame.MAC]bool{}
	each(k.Report, key+".fdb", g.FDB, func(at string, e *FDB) {
		k.entry(at, g, e)
		once(k, at+".mac", macs, e.MAC)
	})
	k.policyName(key+".policy", g.Policy, g)
	if g.Gateway != nil {
		k.gateway(key+".gateway", g)
	}
}

// neighbours checks the ARP and ND settings of a segment.
func (k *checker) neighbours(key string, g *Segment) {
	n := g.Neighbours
	if n == nil {
		return
	}
	k.Ask(key, *n, n.TableConfig.Check)
	ips := map[netip.Addr]bool{}
	each(k.Report, key+".static", n.Static, func(at string, x *Neighbour) {
		if !x.IP.IsValid() {
			k.Fail(at+".ip", nil, "an address is required")
		} else if err := g.neighbour(x.IP); err != nil {
			k.Fail(at+".ip", x.IP, "%v", err)
		}
		once(k, at+".ip", ips, x.IP)
		if !x.MAC.IsHost() {
			k.Want(at+".mac", x.MAC, "the MAC of one host")
		}
	})
	k.neighbourMode(key+".mode", g, n.Mode)
	proxy := func(m Member) bool { return m.NeighbourMode != nil && *m.NeighbourMode == arp.Proxy }
	if n.ExposeMACs && n.Mode != arp.Proxy && !slices.ContainsFunc(g.Members, proxy) {
		k.Fail(key+".exposeMACs", nil, "requires mode proxy, of the segment or of a member: no other hides MACs")
	}
	cfg := g.responderConfig()
	k.Ask(key, *n, cfg.Check)
}

// responderConfig returns the settings of the segment's responder to check, without those from the gateway.
func (g *Segment) responderConfig() (cfg arp.Config) {
	if g.Neighbours != nil {
		cfg = g.Neighbours.Config
	}
	if g.ethernet() {
		cfg.MAC = cmp.Or(cfg.MAC, arp.DefaultAccessMAC)
	}
	cfg.Locate = func(frame.MAC) (frame.Dest, bool) { return 0, false }
	cfg.Inject, cfg.Notify = func(*frame.Frame) bool { return false }, func(frame.Event) {}
	return cfg
}

// neighbourMode checks the requirements of a mode.
func (k *checker) neighbourMode(key string, g *Segment, mode arp.Mode) {
	if mode == arp.Proxy && (g.Gateway == nil || len(g.Gateway.Addresses) == 0) {
		k.Fail(key, nil, "proxy requires a gateway with addresses: it answers with the gateway's MAC")
	}
}

// neighbour returns an error if an address cannot be that of a host in the segment.
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
	at := m.attach()
	k.Ask(key, *m, func() error { return at.Check(false) })
	p := k.ports[m.Port]
	if p == nil {
		k.Want(key+".port", m.Port, "the name of a port")
		return
	}
	if m.VLAN < 0 || m.VLAN > 4094 {
		k.Want(key+".vlan", m.VLAN, "1 to 4094, or 0 for untagged")
	} else if m.Service && m.VLAN == 0 {
		k.Fail(key+".service", nil, "requires a vlan")
	}
	if p.bare() {
		k.bareMember(key, g, m)
	}
	here := strconv.Itoa(int(g.VNI))
	tagged := fmt.Sprintf("%s vlan %d", m.Port, m.VLAN)
	if m.Service {
		tagged = fmt.Sprintf("%s service vlan %d", m.Port, m.VLAN)
	}
	if k.claim("port "+tagged+" in "+here, here) != "" {
		k.Fail(key+".port", nil, "%s is already in VNI %s", tagged, here)
	} else if m.Match != nil && m.AttachConfig.Match != nil {
		k.Fail(key+".match", nil, "the member has a Matcher of the program's own")
	} else if m.Match != nil {
		k.Ask(key+".match", *m.Match, m.Match.Check)
	} else if at.Match != nil { // of the program's own
	} else if other := k.claim("port "+tagged, here); other != "" {
		k.Fail(key+".port", nil, "%s is already in VNI %s", tagged, other)
	}
	if name := vswitch.AttachmentName(m.Port, m.tag()); g.member(name) != nil && len(g.membersNamed(m.Port)) > 1 {
		k.Fail(key+".port", nil, "%s has several members, and this one the name of another port, %s", m.Port, name)
	}
	if m.Guard != nil {
		k.Ask(key+".guard", *m.Guard, m.Guard.Check)
	}
	k.policyName(key+".policy", m.Policy, g)
	if _, err := l3.NewMSSClamp(m.MSSClamp); err != nil && m.MSSClamp != 0 {
		k.Want(key+".mssClamp", m.MSSClamp, "68 to 65535, or 0 for none")
	}
	if m.Isolated && m.Group != 0 {
		k.Fail(key+".group", m.Group, "isolated members have a group already")
	}
}

// bareMember checks a member that carries IP without Ethernet.
func (k *checker) bareMember(key string, g *Segment, m *Member) {
	if g.Gateway == nil && !g.CrossConnect.IsValid() && !k.begun {
		k.Fail(key+".port", m.Port, "an IP port requires a gateway or a cross-connect")
	}
	if len(g.Members) > 1 || len(g.in()) > 0 && !g.CrossConnect.IsValid() {
		k.Fail(key+".port", m.Port, "an IP port must be alone in its segment")
	}
	const ethernet = "port %q carries IP without Ethernet"
	if m.VLAN != 0 {
		k.Fail(key+".vlan", nil, ethernet, m.Port)
	}
	if m.Locked {
		k.Fail(key+".locked", nil, ethernet, m.Port)
	}
	if m.attach().Match != nil {
		k.Fail(key+".match", nil, ethernet, m.Port)
	}
	if m.NeighbourMode != nil {
		k.Fail(key+".neighbourMode", nil, ethernet, m.Port)
	}
}

// memberMode checks the mode of a member; key is that of the segment.
func (k *checker) memberMode(at, key string, g *Segment, m *Member) {
	if m.NeighbourMode == nil || k.ports[m.Port] == nil {
		return
	}
	if g.Neighbours == nil && !g.ethernet() {
		k.Fail(at, nil, "requires neighbours or a gateway with a MAC in the segment")
		return
	}
	k.neighbourMode(at, g, *m.NeighbourMode)
	cfg := g.responderConfig()
	cfg.Mode = *m.NeighbourMode
	var errs setting.Errors
	errors.As(cfg.Check(), &errs)
	for _, e := range errs {
		if name := conf.Key(reflect.TypeFor[Neighbours](), e.Path); !k.Told(key + ".neighbours." + name) {
			e.Config, e.Path = "", name
			k.Fail(at, cfg.Mode, "%v", e)
		}
	}
}

func (k *checker) entry(key string, g *Segment, e *FDB) {
	given := 0
	for _, is := range []bool{e.Remote.IsValid(), len(e.Remotes) > 0, e.Port != "", e.Filter} {
		if is {
			given++
		}
	}
	far := ""
	switch {
	case e.Remote.IsValid():
		far = ".remote"
	case len(e.Remotes) > 0:
		far = ".remotes"
	}
	switch w := g.Gateway; {
	case e.MAC.IsZero(), e.MAC == frame.Broadcast:
		k.Want(key+".mac", e.MAC, "the MAC of one host or of a multicast group")
	case w != nil && (e.MAC == w.MAC || e.MAC == w.VTEPMAC):
		k.Fail(key+".mac", e.MAC, "is the gateway's MAC")
	case e.MAC.IsGroup() && len(e.Remotes) > 0:
		k.Fail(key+".mac", e.MAC, "a multicast group needs remote, port or filter")
	}
	switch {
	case given > 1:
		k.Fail(key, nil, "only one of remote, remotes, port and filter is allowed")
	case given == 0 && !k.Failed(key):
		k.Fail(key, nil, "one of remote, remotes, port and filter is required")
	case given == 0:
	case far != "" && len(g.in()) == 0:
		k.Fail(key+far, nil, "the segment has no tunnel")
	case far != "":
		k.remotes(key, k.tunnelOf(key, g, e.Tunnel), e)
	case e.Tunnel != "":
		k.Fail(key+".tunnel", nil, "requires remote or remotes")
	case e.VNI != 0:
		k.Fail(key+".vni", nil, "requires remote or remotes")
	case e.Port != "":
		k.memberName(key+".port", g, e.Port)
	}
}

// memberName checks that a name stands for one member.
func (k *checker) memberName(key string, g *Segment, name string) {
	list := g.membersNamed(name)
	switch len(list) {
	case 0:
		k.Want(key, name, "a member of the segment")
	case 1:
	default:
		names := make([]string, len(list))
		for i, m := range list {
			names[i] = vswitch.AttachmentName(m.Port, m.tag())
		}
		k.Want(key, name, "one of its members there, by the tag: %s", strings.Join(names, ", "))
	}
}

// remotes checks the peers of an entry.
func (k *checker) remotes(key string, t *Tunnel, e *FDB) {
	if e.Remote.IsValid() {
		k.remote(key+".remote", t, e.Remote)
	}
	if len(e.Remotes) == 1 {
		k.Fail(key+".remotes", e.Remotes[0], "two or more peers are required; use remote for one")
	}
	k.peers(key+".remotes", e.Remotes, t, k.remote)
	switch {
	case !e.VNI.Valid():
		k.Want(key+".vni", e.VNI, "1 to %d, or 0 for the VNI of the tunnel here", frame.MaxVNI)
	case e.VNI != 0 && t != nil && t.Type.Bare():
		k.Fail(key+".vni", e.VNI, "IP-in-IP has no VNI")
	}
}

// peers checks a list of peers of a tunnel, each once.
func (k *checker) peers(key string, list []netip.Addr, t *Tunnel, check func(key string, t *Tunnel, a netip.Addr)) {
	seen := map[netip.Addr]bool{}
	each(k.Report, key, list, func(at string, a *netip.Addr) {
		check(at, t, *a)
		once(k, at, seen, *a)
	})
}
