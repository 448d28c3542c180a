package table

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/policy"
)

// acls returns the ACLs that are bound to a port, by VLAN; that of VLAN 0 is for the whole port.
func (p Row) acls() map[int]string {
	all := map[int]string{}
	p.pairs("acl_bindings", func(k, v any) {
		if vlan, ok := integer(k); ok {
			all[vlan] = uuid(v)
		}
	})
	return all
}

// bind gives the members of a segment the ACLs of their ports.
func (r *reader) bind(s *Segment, of map[string]map[int]string) {
	for _, m := range s.Members {
		id, ok := of[m.Port][m.VLAN]
		if !ok {
			id, ok = of[m.Port][0]
		}
		if !ok {
			continue
		}
		if s.ACLs == nil {
			s.ACLs = map[Member]string{}
		}
		s.ACLs[m] = r.acl(id, false)
		if r.inexact[s.ACLs[m]] {
			r.faulty[m.Port] = true
		}
	}
}

// ofRouted ends the names of ACLs for packets that are routed.
const ofRouted = " routed"

// acl returns the name of an ACL, "" for none: one for packets that are routed has another.
func (r *reader) acl(id string, routed bool) (name string) {
	if id == "" {
		return ""
	}
	if name = r.title(ACL, "acl_name", id); routed {
		name += ofRouted
	}
	if r.rules[name] == nil {
		r.rules[name], r.inexact[name] = r.entries(id, routed)
	}
	return name
}

// entries returns the rules of an ACL, the entries with lower numbers first. What no entry matches is allowed. An ACL that is not there,
// or too long, denies everything. It is inexact if it denies more than its entries say. Rules for packets that are routed have no MACs.
func (r *reader) entries(id string, routed bool) (c *policy.Config, inexact bool) {
	c = &policy.Config{Stateless: true}
	closed := func(why string) (*policy.Config, bool) {
		r.leave(ACL, id, why)
		return &policy.Config{Stateless: true, Default: policy.Deny}, true
	}
	row := r.Row(ACL, id)
	if row == nil {
		return closed(NoACL)
	}
	type entry struct {
		id  string
		row Row
		seq float64
	}
	var all []entry
	for _, id := range row.Refs("acl_entries") {
		e := r.Row(ACLEntry, id)
		seq, _ := e.atom("sequence").(float64)
		all = append(all, entry{id, e, seq})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.id, b.id)) })
	if len(all) > policy.MaxRules {
		return closed(LongACL)
	}
	for _, e := range all {
		x, exact := e.row.rule()
		if routed && len(x.SrcMACs)+len(x.DstMACs)+len(x.EtherTypes) > 0 {
			x.SrcMACs, x.DstMACs, x.EtherTypes, exact = nil, nil, nil, false
		}
		if !exact {
			r.leave(ACLEntry, e.id, BadEntry)
			if inexact = true; x.Action == policy.Allow {
				continue
			}
		}
		c.Rules = append(c.Rules, x)
	}
	return c, inexact
}

// rule returns what an ACL_entry says. It is not exact if a condition is none that a rule can have, and has been left out: then
// the rule matches more than the entry.
func (r Row) rule() (x policy.Rule, exact bool) {
	c := conditions{row: r, exact: true}
	x.Direction = map[string]policy.Direction{"ingress": policy.Ingress, "egress": policy.Egress}[r.text("direction")]
	if x.Action = policy.Deny; r.text("action") == "permit" {
		x.Action = policy.Allow
	}
	x.SrcMACs, x.DstMACs = c.mac("source_mac"), c.mac("dest_mac")
	if s := r.text("ethertype"); s != "" {
		n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(s), "0x"), 16, 16)
		if c.must(err == nil && n >= 0x600) {
			x.EtherTypes = []uint16{uint16(n)}
		}
	}
	x.Src, x.Dst = c.prefix("source_ip", "source_mask"), c.prefix("dest_ip", "dest_mask")
	if n, ok := c.number("protocol", 255); ok && c.must(n > 0) {
		x.Protocol = uint8(n)
	}
	x.SrcPorts, x.DstPorts = c.ports("source_port_min", "source_port_max"), c.ports("dest_port_min", "dest_port_max")
	code, one := c.number("icmp_code", 255)
	if t, ok := c.number("icmp_type", 255); ok {
		x.ICMP = []policy.ICMPType{{Type: uint8(t), Code: uint8(code), OneCode: one}}
	} else {
		c.must(!one)
	}
	c.must(len(atoms(r["tcp_flags"])) == 0)
	if !c.must((&policy.Config{Rules: []policy.Rule{x}}).Check() == nil) { // such as ports without a protocol that has some
		x.SrcPorts, x.DstPorts, x.ICMP = nil, nil, nil
	}
	return x, c.exact && r != nil
}

// conditions reads those of an entry.
type conditions struct {
	row   Row
	exact bool
}

func (c *conditions) must(ok bool) bool {
	c.exact = c.exact && ok
	return ok
}

func (c *conditions) mac(column string) []frame.MAC {
	s := c.row.text(column)
	if s == "" {
		return nil
	}
	mac, err := frame.ParseMAC(s)
	if !c.must(err == nil) {
		return nil
	}
	return []frame.MAC{mac}
}

// number returns an optional number up to a limit.
func (c *conditions) number(column string, limit int) (n int, ok bool) {
	if len(atoms(c.row[column])) == 0 {
		return 0, false
	}
	n, ok = c.row.number(column)
	return n, c.must(ok && n <= limit)
}

// prefix returns an address with a mask; without one it is that of a host. Masks with holes are none of a prefix.
func (c *conditions) prefix(ip, mask string) []netip.Prefix {
	if c.row.text(ip) == "" {
		c.must(c.row.text(mask) == "")
		return nil
	}
	a, err := netip.ParseAddr(c.row.text(ip))
	if !c.must(err == nil && a.Zone() == "" && !a.Is4In6()) {
		return nil
	}
	bits := a.BitLen()
	if s := c.row.text(mask); s != "" {
		m, err := netip.ParseAddr(s)
		if !c.must(err == nil && m.BitLen() == a.BitLen()) {
			return nil
		}
		ones, size := net.IPMask(m.AsSlice()).Size()
		if !c.must(size > 0) {
			return nil
		}
		bits = ones
	}
	return []netip.Prefix{netip.PrefixFrom(a, bits).Masked()}
}

// ports returns a range whose ends are optional.
func (c *conditions) ports(first, last string) []policy.PortRange {
	a, from := c.number(first, 65535)
	b, to := c.number(last, 65535)
	if !from && !to {
		return nil
	}
	if !to {
		b = 65535
	}
	return []policy.PortRange{{First: uint16(a), Last: uint16(b)}}
}
