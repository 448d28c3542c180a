package flannel

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What flanneld writes into a node of Kubernetes.
var nodeLease = NodeLease{PodCIDRs: "10.3.2.0/24", Type: "vxlan", PublicIP: "192.0.2.2", Data: `{"VNI":1,"VtepMAC":"02:00:00:00:00:02"}`}

func TestNodeLease(t *testing.T) {
	mac := frame.MAC{2, 0, 0, 0, 0, 2}
	four, six := End{netip.MustParseAddr("192.0.2.2"), 1, mac}, End{netip.MustParseAddr("2001:db8::2"), 1, mac}
	const data = `{"VNI":1,"VtepMAC":"02:00:00:00:00:02"}`
	for key, c := range map[string]struct {
		node NodeLease
		want Attrs
	}{
		"10.3.2.0-24": {nodeLease, Attrs{"vxlan", four, End{}}},
		"10.3.2.0-24&fc00:3:0:2::-64": {NodeLease{"fc00:3:0:2::/64,10.3.2.0/24", "vxlan", "192.0.2.2", "2001:db8::2", data, data},
			Attrs{"vxlan", four, six}},
		"0.0.0.0-0&fc00:3:0:2::-64": {NodeLease{"FC00:3:0:2:0:0:0:0/64", "vxlan", "", "2001:db8::2", "", data}, Attrs{"vxlan", End{}, six}},
		"10.3.3.0-24":               {NodeLease{"10.3.3.0/24,fc00:3:0:3::/64", "vxlan", "192.0.2.2", "", data, ""}, Attrs{"vxlan", four, End{}}}, // the network has IPv4 alone
		"0.0.0.0-0&fc00:3:0:3::-64": {NodeLease{"10.3.3.0/24,fc00:3:0:3::/64", "host-gw", "0.0.0.0", "2001:db8::2", "null", "null"}, Attrs{"host-gw", End{}, End{PublicIP: six.PublicIP}}},
		"10.3.4.0-24":               {NodeLease{"10.3.4.0/24", "", "192.0.2.2", "", "null", ""}, Attrs{"udp", End{PublicIP: four.PublicIP}, End{}}},
	} {
		l, err := c.node.Lease("a")
		if err != nil || l.Subnet.Key() != key || l.Attrs != c.want {
			t.Errorf("%s: %+v, %v", key, l, err)
		}
		again := l.Node()
		again.PodCIDRs = c.node.PodCIDRs
		if x, err := again.Lease("a"); err != nil || x != l {
			t.Errorf("%s: written and read again %+v, %v", key, x, err)
		}
	}
	for name, c := range map[string]struct {
		reason Reason
		change func(n *NodeLease)
	}{
		"no CIDR":           {NoSubnet, func(n *NodeLease) { n.PodCIDRs = "" }},
		"host bits":         {HostBits, func(n *NodeLease) { n.PodCIDRs = "10.3.2.1/24" }},
		"no prefix":         {BadKey, func(n *NodeLease) { n.PodCIDRs = "10.3.2.0" }},
		"too small":         {BadKey, func(n *NodeLease) { n.PodCIDRs = "10.3.2.0/31" }},
		"two of a family":   {BadKey, func(n *NodeLease) { n.PodCIDRs = "10.3.2.0/24,10.3.3.0/24" }},
		"an empty one":      {BadKey, func(n *NodeLease) { n.PodCIDRs = "10.3.2.0/24," }},
		"IPv4 in IPv6":      {BadKey, func(n *NodeLease) { n.PodCIDRs = "::ffff:10.3.2.0/120" }},
		"long CIDRs":        {BadKey, func(n *NodeLease) { n.PodCIDRs = strings.Repeat("1", 1<<20) }},
		"no address":        {BadPublicIP, func(n *NodeLease) { n.PublicIP = "" }},
		"a group":           {BadPublicIP, func(n *NodeLease) { n.PublicIP = "224.0.0.1" }},
		"no such address":   {BadPublicIP, func(n *NodeLease) { n.PublicIP = "192.0.2" }},
		"of another family": {BadPublicIP, func(n *NodeLease) { n.PublicIP = "2001:db8::2" }},
		"a zone":            {BadPublicIP, func(n *NodeLease) { n.PublicIPv6 = "fe80::1%eth0" }},
		"no data":           {BadData, func(n *NodeLease) { n.Data = "" }},
		"null":              {BadData, func(n *NodeLease) { n.Data = "null" }},
		"no JSON":           {BadData, func(n *NodeLease) { n.Data = "{" }},
		"a group's MAC":     {BadMAC, func(n *NodeLease) { n.Data = `{"VNI":1,"VtepMAC":"ff:ff:ff:ff:ff:ff"}` }},
		"no MAC":            {BadMAC, func(n *NodeLease) { n.Data = `{"VNI":1,"VtepMAC":"x"}` }},
		"oversize":          {Oversize, func(n *NodeLease) { n.Data += strings.Repeat(" ", maxValue) }},
		"a long type":       {BadValue, func(n *NodeLease) { n.Type = strings.Repeat("x", maxType+1) }},
	} {
		n := nodeLease
		c.change(&n)
		var r *Refusal
		if l, err := n.Lease("a"); !errors.As(err, &r) || r.Reason != c.reason || r.Key != "a" || l != (Lease{}) || len(err.Error()) > 700 {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

// Nodes are known by their names: two that have one pod CIDR are two, of which the older one counts.
func TestMapperNodes(t *testing.T) {
	n := mustNetwork(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`)
	own := ownLease(n)
	m := check.Must(NewMapper(&MapperConfig{Network: n, Own: own, Key: "own", VRF: "pods"}))(t)
	to := model()
	flush := func() (list []string) {
		t.Helper()
		check.OK(t, m.Flush("flannel", to))
		for _, r := range to.Rows("flannel") {
			if p, ok := r.(control.Prefix); ok {
				list = append(list, p.Prefix.String()+" "+p.Via.MAC.String())
			}
		}
		return list
	}
	node := func(name string, created int64, change func(n *NodeLease)) Record {
		x := nodeLease
		if change != nil {
			change(&x)
		}
		return Record{Key: name, Node: &x, Created: created}
	}
	long := strings.Repeat("n", maxName-1)
	m.Reset([]Record{
		node("own", 1, nil), // passed over
		node(long+"1", 5, nil),
		node(long+"2", 4, func(n *NodeLease) { n.Data, n.PublicIP = `{"VNI":1,"VtepMAC":"02:00:00:00:00:03"}`, "192.0.2.3" }),
		node("new", 9, func(n *NodeLease) { n.PodCIDRs = "" }),
	})
	if got := flush(); len(got) != 1 || got[0] != "10.3.2.0/24 02:00:00:00:00:03" {
		t.Errorf("%q", got)
	}
	if r := m.Refused(); m.Len() != 3 || r[SameSubnet] != 1 || r[NoSubnet] != 1 {
		t.Errorf("%d leases, refused %v", m.Len(), r)
	}
	m.Apply(Change{Set: []Record{node("new", 9, func(n *NodeLease) { n.PodCIDRs, n.Data = "10.3.7.0/24", `{"VNI":1,"VtepMAC":"02:00:00:00:00:07"}` })}, Deleted: []string{long + "2"}})
	if got := flush(); len(got) != 2 || got[0] != "10.3.2.0/24 02:00:00:00:00:02" || got[1] != "10.3.7.0/24 02:00:00:00:00:07" {
		t.Errorf("%q", got)
	}
	if r := m.Refused(); len(r) != 0 {
		t.Errorf("refused %v", r)
	}
	m.Set(node("new", 9, func(n *NodeLease) { n.PodCIDRs, n.Data = "10.3.8.0/24", `{"VNI":1,"VtepMAC":"02:00:00:00:00:07"}` })) // nothing else has changed
	if got := flush(); len(got) != 2 || got[1] != "10.3.8.0/24 02:00:00:00:00:07" {
		t.Errorf("%q", got)
	}
}

// The first subnet of a network, and those of other lengths, are the business of who chooses them.
func TestContains(t *testing.T) {
	n := mustNetwork(t, `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`)
	for key, want := range map[string]bool{
		"10.3.0.0-24&fc00:3::-64": true, "10.3.9.0-28&fc00:3:0:9::-80": true, "10.3.0.0-16&fc00:3::-48": true,
		"10.3.9.0-24": false, "0.0.0.0-0&fc00:3::-64": false, "10.2.0.0-15&fc00:3::-64": false, "10.4.0.0-24&fc00:3::-64": false, "10.3.9.0-24&fc00:4::-64": false,
	} {
		s, err := ParseKey(key)
		if err != nil || n.Contains(s) != want {
			t.Errorf("%s: %v, %v", key, n.Contains(s), err)
		}
	}
	if n.Contains(Subnet{}) {
		t.Error("none")
	}
}

// What is accepted of a node is written in one way, and read again it is the same.
func FuzzNodeLease(f *testing.F) {
	f.Add("10.3.2.0/24", "vxlan", "192.0.2.2", `{"VNI":1,"VtepMAC":"02:00:00:00:00:02"}`, "", "")
	f.Add("fc00:3:0:2::/64,10.3.2.0/24", "vxlan", "192.0.2.2", `{"VNI":1,"VtepMAC":"02:00:00:00:00:02"}`, "2001:db8::2", `{"VNI":1,"VtepMAC":"02:00:00:00:00:03"}`)
	f.Add("10.3.2.0/24,fc00:3:0:2::/64", "host-gw", "0.0.0.0", "null", "2001:db8::2", "null")
	f.Fuzz(func(t *testing.T, cidrs, backend, ip, data, ip6, data6 string) {
		n := NodeLease{cidrs, backend, ip, ip6, data, data6}
		l, err := n.Lease("a")
		if err != nil {
			if r, ok := err.(*Refusal); !ok || r.Key != "a" || len(r.Detail) > maxDetail || l != (Lease{}) {
				t.Fatalf("%v with %T", l, err)
			}
			return
		}
		again := l.Node()
		again.PodCIDRs = strings.ReplaceAll(l.Subnet.String(), ", ", ",")
		if x, err := again.Lease("a"); err != nil || x != l {
			t.Fatalf("%+v, read again %+v, %v", l, x, err)
		}
		if x, err := ParseLease(l.Subnet.Key(), l.Value()); utf8.ValidString(backend) && (err != nil || x != l) { // which JSON is always
			t.Fatalf("%+v, in etcd %+v, %v", l, x, err)
		}
	})
}
