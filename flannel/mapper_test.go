package flannel

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/control/controltest"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

const vxlanNetwork = `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"%s}}`

func mac(n int) frame.MAC { return frame.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }

func end(ip string, m int) End {
	if ip == "" {
		return End{}
	}
	e := End{PublicIP: netip.MustParseAddr(ip)}
	if m != 0 {
		e.VNI, e.MAC = 1, mac(m)
	}
	return e
}

// ownLease is that of the node in tests.
func ownLease(n *Network) Lease {
	l := Lease{Attrs: Attrs{Type: n.Backend.Type}}
	if n.IPv4.IsValid() {
		l.Subnet.IPv4, l.IPv4 = netip.MustParsePrefix("10.3.1.0/24"), end("192.0.2.1", 1)
	}
	if n.IPv6.IsValid() {
		l.Subnet.IPv6, l.IPv6 = netip.MustParsePrefix("fc00:3:0:1::/64"), end("2001:db8::1", 101)
	}
	return l
}

func mapper(t testing.TB, text string, change func(c *MapperConfig)) *Mapper {
	t.Helper()
	n := mustNetwork(t, text)
	c := &MapperConfig{Network: n, Own: ownLease(n), VRF: "pods"}
	if change != nil {
		change(c)
	}
	m := check.Must(NewMapper(c))(t)
	return m
}

// record is that of another node, which came at a revision.
func record(key string, created int64, a Attrs) Record {
	return Record{Key: key, Value: a.Value(), Created: created, Revision: created, Expires: true}
}

func vxlan(ip string, m int) Attrs { return Attrs{Type: "vxlan", IPv4: end(ip, m)} }

// rows returns the rows in a Model after a Flush, sorted.
func rows(t testing.TB, m *Mapper, to *controltest.Model) (list []string) {
	t.Helper()
	check.OK(t, m.Flush("flannel", to))
	for _, r := range to.Rows("flannel") {
		list = append(list, r.String())
	}
	slices.Sort(list)
	return list
}

func model() *controltest.Model {
	return &controltest.Model{VNIs: []frame.VNI{1, 9}, VRFs: map[string][]frame.VNI{"pods": {1, 9}}}
}

// What a lease comes to with each backend and generation.
func TestRows(t *testing.T) {
	links := prefixes("192.0.2.0/24", "2001:db8::/64")
	near := Attrs{Type: "vxlan", IPv4: end("192.0.2.2", 2), IPv6: end("2001:db8::2", 102)}
	far := Attrs{Type: "vxlan", IPv4: end("198.51.100.3", 3)}
	for _, c := range []struct {
		name    string
		backend string
		change  func(c *MapperConfig)
		want    []string
		routes  string
	}{
		{"v3", `{"Type":"vxlan"}`, nil, []string{
			"prefix 10.3.2.0/24 vrf pods via vni 1 mac 02:00:00:00:00:02 vtep 192.0.2.2:0",
			"prefix 10.3.3.0/24 vrf pods via vni 1 mac 02:00:00:00:00:03 vtep 198.51.100.3:0",
			"prefix fc00:3:0:2::/64 vrf pods via vni 1 mac 02:00:00:00:00:66 vtep [2001:db8::2]:0"}, "[]"},
		{"v2", `{"Type":"vxlan"}`, func(c *MapperConfig) { c.Generation = 2 }, []string{
			"mac 02:00:00:00:00:02 vni 1 vtep 192.0.2.2:0", "mac 02:00:00:00:00:03 vni 1 vtep 198.51.100.3:0", "mac 02:00:00:00:00:66 vni 1 vtep [2001:db8::2]:0"}, "[]"},
		{"v1", `{"Type":"vxlan"}`, func(c *MapperConfig) { c.Generation = 1 }, []string{
			"flood vni 1 vtep 192.0.2.2:0 no broadcast no unknown", "flood vni 1 vtep 198.51.100.3:0 no broadcast no unknown", "flood vni 1 vtep [2001:db8::2]:0 no broadcast no unknown"}, "[]"},
		{"v3, the host routes", `{"Type":"vxlan"}`, func(c *MapperConfig) { c.Host, c.VRF = true, "" }, []string{
			"mac 02:00:00:00:00:02 vni 1 ip 10.3.2.0 vtep 192.0.2.2:0", "mac 02:00:00:00:00:03 vni 1 ip 10.3.3.0 vtep 198.51.100.3:0",
			"mac 02:00:00:00:00:66 vni 1 ip fc00:3:0:2:: vtep [2001:db8::2]:0"},
			"[{10.3.2.0/24 10.3.2.0 02:00:00:00:00:02 false} {10.3.3.0/24 10.3.3.0 02:00:00:00:00:03 false} {fc00:3:0:2::/64 fc00:3:0:2:: 02:00:00:00:00:66 false}]"},
		{"v1, the host routes", `{"Type":"vxlan"}`, func(c *MapperConfig) { c.Host, c.Generation = true, 1 }, []string{
			"flood vni 1 vtep 192.0.2.2:0 no broadcast no unknown", "flood vni 1 vtep 198.51.100.3:0 no broadcast no unknown", "flood vni 1 vtep [2001:db8::2]:0 no broadcast no unknown"}, "[]"},
		{"DirectRouting", `{"Type":"vxlan","DirectRouting":true}`, func(c *MapperConfig) { c.Direct = 9 }, []string{
			"flood vni 1 vtep 192.0.2.2:0 no broadcast no unknown", "flood vni 1 vtep [2001:db8::2]:0 no broadcast no unknown",
			"prefix 10.3.2.0/24 vrf pods via vni 9 ip 192.0.2.2",
			"prefix 10.3.3.0/24 vrf pods via vni 1 mac 02:00:00:00:00:03 vtep 198.51.100.3:0",
			"prefix fc00:3:0:2::/64 vrf pods via vni 9 ip 2001:db8::2"}, "[]"},
		{"DirectRouting without a segment for it", `{"Type":"vxlan","DirectRouting":true}`, nil, []string{
			"prefix 10.3.2.0/24 vrf pods via vni 1 mac 02:00:00:00:00:02 vtep 192.0.2.2:0",
			"prefix 10.3.3.0/24 vrf pods via vni 1 mac 02:00:00:00:00:03 vtep 198.51.100.3:0",
			"prefix fc00:3:0:2::/64 vrf pods via vni 1 mac 02:00:00:00:00:66 vtep [2001:db8::2]:0"}, "[]"},
		{"DirectRouting, the host routes", `{"Type":"vxlan","DirectRouting":true}`, func(c *MapperConfig) { c.Host = true }, []string{
			"flood vni 1 vtep 192.0.2.2:0 no broadcast no unknown", "flood vni 1 vtep [2001:db8::2]:0 no broadcast no unknown",
			"mac 02:00:00:00:00:03 vni 1 ip 10.3.3.0 vtep 198.51.100.3:0"},
			"[{10.3.2.0/24 192.0.2.2 00:00:00:00:00:00 true} {10.3.3.0/24 10.3.3.0 02:00:00:00:00:03 false} {fc00:3:0:2::/64 2001:db8::2 00:00:00:00:00:00 true}]"},
		{"host-gw", `{"Type":"host-gw"}`, func(c *MapperConfig) { c.Direct = 9 }, []string{
			"prefix 10.3.2.0/24 vrf pods via vni 9 ip 192.0.2.2", "prefix fc00:3:0:2::/64 vrf pods via vni 9 ip 2001:db8::2"}, "[]"},
		{"host-gw, the host routes", `{"Type":"host-gw"}`, func(c *MapperConfig) { c.Host = true }, nil,
			"[{10.3.2.0/24 192.0.2.2 00:00:00:00:00:00 true} {fc00:3:0:2::/64 2001:db8::2 00:00:00:00:00:00 true}]"},
		{"ipip", `{"Type":"ipip"}`, func(c *MapperConfig) { c.VNI = 1 }, []string{
			"prefix 10.3.2.0/24 vrf pods via vni 1 vtep 192.0.2.2:0", "prefix 10.3.3.0/24 vrf pods via vni 1 vtep 198.51.100.3:0"}, "[]"},
		{"udp", `{"Type":"udp"}`, func(c *MapperConfig) { c.VNI = 1 }, []string{
			"prefix 10.3.2.0/24 vrf pods via vni 1 vtep 192.0.2.2:0", "prefix 10.3.3.0/24 vrf pods via vni 1 vtep 198.51.100.3:0",
			"prefix fc00:3:0:2::/64 vrf pods via vni 1 vtep [2001:db8::2]:0"}, "[]"},
		{"ipip with DirectRouting", `{"Type":"ipip","DirectRouting":true}`, func(c *MapperConfig) { c.VNI, c.Direct = 1, 9 }, []string{
			"flood vni 1 vtep 192.0.2.2:0 no broadcast no unknown",
			"prefix 10.3.2.0/24 vrf pods via vni 9 ip 192.0.2.2", "prefix 10.3.3.0/24 vrf pods via vni 1 vtep 198.51.100.3:0"}, "[]"},
	} {
		text := `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": ` + c.backend + `}`
		if strings.Contains(text, "ipip") {
			text = strings.Replace(text, `"EnableIPv6": true, `, "", 1)
		}
		m := mapper(t, text, c.change)
		m.SetLinks(links)
		near.Type, far.Type = m.cfg.Network.Backend.Type, m.cfg.Network.Backend.Type
		m.Set(record("10.3.2.0-24&fc00:3:0:2::-64", 5, near))
		m.Set(record("10.3.3.0-24", 6, far))
		to := model()
		if got := rows(t, m, to); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if got := fmt.Sprint(m.Routes()); got != c.routes {
			t.Errorf("%s: routes %s, want %s", c.name, got, c.routes)
		}
		m.Reset(nil)
		if got := rows(t, m, to); len(got) != 0 || len(m.Routes()) != 0 {
			t.Errorf("%s: after all have gone %s, %v", c.name, got, m.Routes())
		}
	}
}

// What is refused for what the node and the other leases are. Each is counted while it is there.
func TestMapperRefusals(t *testing.T) {
	vni2 := vxlan("192.0.2.2", 2)
	vni2.IPv4.VNI = 2
	for _, c := range []struct {
		key  string
		a    Attrs
		want string
	}{
		{"10.3.2.0-24", vxlan("192.0.2.2", 2), ""},
		{"10.3.0.0-16", vxlan("192.0.2.2", 2), ""}, // ours and others' are longer
		{"10.3.2.0-24", Attrs{Type: "host-gw", IPv4: end("192.0.2.2", 0)}, "backend: host-gw: must be vxlan"},
		{"10.3.2.0-24", vni2, "vni: 2: must be 1"},
		{"10.4.2.0-24", vxlan("192.0.2.2", 2), "outside: 10.4.2.0/24: must be in 10.3.0.0/16"},
		{"10.0.0.0-8", vxlan("192.0.2.2", 2), "outside: 10.0.0.0/8: must be in 10.3.0.0/16"},
		{"10.3.1.128-25", vxlan("192.0.2.2", 2), "own-subnet: 10.3.1.128/25: ours is 10.3.1.0/24"},
		{"10.3.0.0-23", vxlan("192.0.2.2", 2), ""},                                                                   // ours is longer
		{"10.3.8.0-25", vxlan("192.0.2.2", 2), "same-subnet: 10.3.8.0/25: its first address is that of 10.3.8.0-24"}, // and one next hop has one MAC
		{"10.3.8.0-23", vxlan("192.0.2.2", 2), "same-subnet: 10.3.8.0/23: its first address is that of 10.3.8.0-24"},
		{"10.3.8.128-25", vxlan("192.0.2.2", 2), "same-subnet: 10.3.8.128/25: is in the subnet of 10.3.8.0-24"},
		{"10.3.2.0-24", vxlan("192.0.2.1", 2), "own-public-ip: 192.0.2.1 is the address of this node"},
		{"10.3.2.0-24", vxlan("10.3.1.7", 2), "inside: 10.3.1.7: must not be in 10.3.0.0/16"},
		{"10.3.2.0-24", vxlan("192.0.2.2", 1), "own-mac: 02:00:00:00:00:01 is the MAC of this node"},
		{"10.3.2.0-24", vxlan("192.0.2.2", 101), "own-mac: "},
		{"10.3.2.7-24", vxlan("192.0.2.2", 2), "host-bits: "},
		{"10.3.9.0-24", vxlan("192.0.2.2", 9), "same-mac: 02:00:00:00:00:09: is that of 10.3.8.0-24 at 192.0.2.8"},
		{"10.3.9.0-24", vxlan("192.0.2.8", 9), ""}, // another lease of the same node
		{"10.3.8.0-24&fc00:3:0:8::-64", Attrs{Type: "vxlan", IPv4: end("192.0.2.2", 2), IPv6: end("2001:db8::2", 3)}, "same-subnet: 10.3.8.0/24: its first address is that of 10.3.8.0-24"},
		{"0.0.0.0-0&fc00:4::-64", Attrs{Type: "vxlan", IPv6: end("2001:db8::2", 2)}, "outside: fc00:4::/64: must be in fc00:3::/48"},
	} {
		m := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil)
		m.Set(record("10.3.8.0-24", 5, vxlan("192.0.2.8", 9)))
		m.Set(record(c.key, 6, c.a))
		var got []string
		for r := range m.Remotes() {
			for _, x := range r.Refused {
				got = append(got, fmt.Sprintf("%v: %s", x.Reason, x.Detail))
				if n := m.Refused()[x.Reason]; n != 1 || x.Key != c.key {
					t.Errorf("%v: %d counted", x, n)
				}
			}
		}
		if s := strings.Join(got, "; "); !strings.HasPrefix(s, c.want) || (s == "") != (c.want == "") {
			t.Errorf("%s %+v: %q, want %q", c.key, c.a, s, c.want)
		}
		m.Delete(c.key)
		if got := m.Refused(); len(got) != 0 {
			t.Errorf("%s: %v counted after it has gone", c.key, got)
		}
	}
	m := mapper(t, fmt.Sprintf(vxlanNetwork, ""), func(c *MapperConfig) { c.Own.Subnet.IPv4 = netip.MustParsePrefix("10.3.4.0/24") })
	m.Set(record("10.3.4.0-23", 5, vxlan("192.0.2.2", 2))) // its next hop would be our own address
	if got := fmt.Sprint(m.Refused()); got != "map[own-subnet:1]" {
		t.Error(got)
	}
	m = mapper(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "host-gw"}}`, func(c *MapperConfig) { c.Direct = 9 })
	m.Set(record("10.3.2.0-24", 5, Attrs{Type: "host-gw", IPv4: end("198.51.100.2", 0)}))
	m.Set(record("0.0.0.0-0&fc00:3:0:8::-64", 5, Attrs{Type: "host-gw", IPv6: end("2001:db8::2", 0)}))
	if got := fmt.Sprint(m.Refused()); got != "map[family:1 off-link:1]" {
		t.Error(got)
	}
	m.SetLinks(prefixes("198.51.100.0/24"))
	if got := fmt.Sprint(m.Refused()); got != "map[family:1]" {
		t.Error(got)
	}
}

// What is shown of a lease: whether one of its families is followed, and goes without a tunnel. A refused one does neither.
func TestRemotes(t *testing.T) {
	show := func(m *Mapper) (list []string) {
		for r := range m.Remotes() {
			list = append(list, fmt.Sprint(r.Key, " ", len(r.Refused), " ", r.Followed, " ", r.Direct, " ", len(r.Rows)))
		}
		return list
	}
	for _, c := range []struct {
		backend string
		want    []string
	}{
		{`{"Type":"host-gw"}`, []string{"10.3.2.0-24&fc00:3:0:2::-64 1 true true 0", "10.3.3.0-24 1 false false 0", "rubbish 1 false false 0"}},
		{`{"Type":"vxlan","DirectRouting":true}`, []string{"10.3.2.0-24&fc00:3:0:2::-64 0 true true 2", "10.3.3.0-24 0 true false 1", "rubbish 1 false false 0"}},
	} {
		m := mapper(t, `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": `+c.backend+`}`, func(c *MapperConfig) { c.Host = true })
		m.SetLinks(prefixes("192.0.2.0/24"))
		b := m.cfg.Network.Backend.Type
		m.Set(record("10.3.2.0-24&fc00:3:0:2::-64", 5, Attrs{Type: b, IPv4: end("192.0.2.2", 2), IPv6: end("2001:db8::2", 102)}))
		m.Set(record("10.3.3.0-24", 6, Attrs{Type: b, IPv4: end("198.51.100.3", 3)}))
		m.Set(record("rubbish", 7, Attrs{}))
		if got := show(m); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.backend, got, c.want)
		}
	}
}

// One half of a lease may be refused and the other followed, and whoever stood back counts when the older one goes.
func TestMapperStandsBack(t *testing.T) {
	m, to := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil), model()
	m.Set(record("10.3.2.0-24&fc00:3:0:2::-64", 7, Attrs{Type: "vxlan", IPv4: end("192.0.2.2", 2), IPv6: end("2001:db8::2", 102)}))
	m.Set(record("10.3.3.0-24&fc00:3:0:2::-64", 6, Attrs{Type: "vxlan", IPv4: end("192.0.2.3", 3), IPv6: end("2001:db8::3", 103)}))
	want := func(what string, prefixes ...string) {
		t.Helper()
		got := rows(t, m, to)
		if len(got) != len(prefixes) {
			t.Errorf("%s: %v", what, got)
			return
		}
		for i, p := range prefixes {
			if !strings.Contains(got[i], p) {
				t.Errorf("%s: %s, want %s", what, got[i], p)
			}
		}
	}
	want("both", "prefix 10.3.2.0/24", "prefix 10.3.3.0/24", "prefix fc00:3:0:2::/64 vrf pods via vni 1 mac 02:00:00:00:00:67")
	m.Delete("10.3.3.0-24&fc00:3:0:2::-64")
	want("the older one has gone", "prefix 10.3.2.0/24", "prefix fc00:3:0:2::/64 vrf pods via vni 1 mac 02:00:00:00:00:66")
	m.Set(record("10.3.4.0-24", 1, vxlan("192.0.2.4", 2))) // an older one with the MAC of IPv4
	want("an older one has the MAC", "prefix 10.3.4.0/24", "prefix fc00:3:0:2::/64 vrf pods via vni 1 mac 02:00:00:00:00:66")
	m.Set(record("10.3.4.0-24", 1, vxlan("192.0.2.4", 4)))
	want("it has another MAC", "prefix 10.3.2.0/24", "prefix 10.3.4.0/24", "prefix fc00:3:0:2::/64")
	m.Set(record("10.3.2.0-24&fc00:3:0:2::-64", 7, Attrs{Type: "vxlan", IPv4: end("192.0.2.2", 2), IPv6: end("2001:db8::2", 2)}))
	want("one MAC for both families is at one VTEP", "prefix 10.3.2.0/24", "prefix 10.3.4.0/24", "prefix fc00:3:0:2::/64 vrf pods via vni 1 mac 02:00:00:00:00:02 vtep 192.0.2.2")
}

// Whose a MAC is, the oldest lease says: one that is refused for it takes nothing from a younger one of its owner.
func TestMapperOldestMAC(t *testing.T) {
	m, to := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil), model()
	for i, ip := range []string{"192.0.2.2", "192.0.2.66", "192.0.2.2"} {
		m.Set(record(fmt.Sprintf("10.3.%d.0-24", 2+i), int64(5+i), vxlan(ip, 2)))
	}
	if got := rows(t, m, to); len(got) != 2 || !strings.Contains(got[1], "10.3.4.0/24") || fmt.Sprint(m.Refused()) != "map[same-mac:1]" {
		t.Errorf("%v, refused %v", got, m.Refused())
	}
	m.Delete("10.3.2.0-24")
	if got := rows(t, m, to); len(got) != 1 || !strings.Contains(got[0], "10.3.3.0/24") {
		t.Errorf("%v", got)
	}
}

// An older lease that cannot count alone keeps neither its subnet nor its MAC from a younger one.
func TestMapperUnfit(t *testing.T) {
	other := end("192.0.2.9", 2)
	other.VNI = 2
	for what, old := range map[string]Record{
		"vni":           record("10.3.2.0-24", 1, Attrs{Type: "vxlan", IPv4: other}),
		"backend":       record("10.3.2.0-24", 1, Attrs{Type: "host-gw", IPv4: End{PublicIP: other.PublicIP}}),
		"own-public-ip": record("10.3.2.0-24", 1, vxlan("192.0.2.1", 2)),
		"outside":       record("10.9.0.0-24", 1, vxlan("192.0.2.9", 2)), // with its MAC
	} {
		m, to := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil), model()
		m.Set(old)
		key := "10.3.2.0-24&fc00:3:0:2::-64"
		m.Set(record(key, 2, Attrs{Type: "vxlan", IPv4: end("192.0.2.2", 2), IPv6: end("2001:db8::2", 102)}))
		if got := rows(t, m, to); len(got) != 2 || !strings.Contains(got[0], "vtep 192.0.2.2:0") || fmt.Sprint(m.Refused()) != "map["+what+":1]" {
			t.Errorf("%s: %v, refused %v", what, got, m.Refused())
		}
		if m.Delete(old.Key); len(rows(t, m, to)) != 2 || len(m.Refused()) != 0 {
			t.Errorf("%s: without it: %v, refused %v", what, rows(t, m, to), m.Refused())
		}
	}
}

// One MAC for both families is at the VTEP of IPv4 only if the lease counts for that.
func TestMapperOneMACOfOneFamily(t *testing.T) {
	m, to := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil), model()
	m.Set(record("10.3.2.0-24&fc00:3:0:2::-64", 2, Attrs{Type: "vxlan", IPv4: end("192.0.2.1", 2), IPv6: end("2001:db8::2", 2)})) // our IPv4
	if got := rows(t, m, to); len(got) != 1 || !strings.Contains(got[0], "vtep [2001:db8::2]:0") || fmt.Sprint(m.Refused()) != "map[own-public-ip:1]" {
		t.Errorf("%v, refused %v", got, m.Refused())
	}
}

// What the switch refuses is named, and tried again when it changes or all is passed again.
func TestUnroutable(t *testing.T) {
	m, to := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil), model()
	bad := errors.New("no such way")
	refuse := true
	to.Refuse = func(r control.Row) error {
		if p, ok := r.(control.Prefix); ok && refuse && p.Via.VTEP.Addr().String() == "192.0.2.2" {
			return bad
		}
		return nil
	}
	strict := programmer(func(owner string, u control.Update) error { u.Loose = false; return to.Program(owner, u) })
	flush := func() {
		t.Helper()
		if err := m.Flush("flannel", strict); err != nil {
			t.Error(err)
		}
	}
	m.Set(record("10.3.2.0-24", 5, vxlan("192.0.2.2", 2)))
	m.Set(record("10.3.3.0-24", 6, vxlan("192.0.2.3", 3)))
	for range 2 {
		flush()
		if got := fmt.Sprint(m.Refused()); got != "map[unroutable:1]" || len(to.Rows("flannel")) != 1 {
			t.Errorf("%s, rows %v", got, to.Rows("flannel"))
		}
		m.Set(record("10.3.4.0-24", 7, vxlan("192.0.2.4", 2))) // has to do with it, and changes nothing
		m.Delete("10.3.4.0-24")
	}
	refuse = false
	m.Resync()
	flush()
	if got := fmt.Sprint(m.Refused()); got != "map[]" || len(to.Rows("flannel")) != 2 {
		t.Errorf("%s, rows %v", got, to.Rows("flannel"))
	}
	failing := errors.New("closed")
	if err := m.Flush("flannel", programmer(func(string, control.Update) error { return failing })); err != nil {
		t.Errorf("nothing to pass: %v", err)
	}
	m.Delete("10.3.3.0-24")
	if err := m.Flush("flannel", programmer(func(string, control.Update) error { return failing })); !errors.Is(err, failing) {
		t.Error(err)
	}
	flush()
	if len(to.Rows("flannel")) != 1 {
		t.Errorf("rows %v", to.Rows("flannel"))
	}
}

// Of what is no lease little is kept, however long it is.
func TestMapperKeepsLittle(t *testing.T) {
	m := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil)
	long := strings.Repeat("x", 1<<20)
	for range 3 {
		m.Set(Record{Key: long, Value: []byte(long)})
		m.Set(Record{Key: "10.3.2.0-24", Value: []byte(`{"PublicIP": "` + long + `"}`)})
	}
	for r := range m.Remotes() {
		if len(r.Key) > 300 {
			t.Errorf("a key of %d bytes", len(r.Key))
		}
		for _, x := range r.Refused {
			if len(x.Error()) > 700 {
				t.Errorf("a refusal of %d bytes", len(x.Error()))
			}
		}
	}
	if got := fmt.Sprint(m.Refused()); got != "map[key:1 oversize:1]" {
		t.Error(got)
	}
	m.Delete(long)
	m.Reset([]Record{{Key: "10.3.2.0-24", Value: []byte(`{"PublicIP": "` + strings.Repeat("y", 4000) + `"}`)}})
	for r := range m.Remotes() {
		if len(r.Refused) != 1 || len(r.Refused[0].Error()) > 700 {
			t.Errorf("%v", r.Refused)
		}
	}
	if m.Len() != 1 {
		t.Errorf("%d leases", m.Len())
	}
}

type programmer func(string, control.Update) error

func (p programmer) Program(owner string, u control.Update) error { return p(owner, u) }

func TestMapperConfig(t *testing.T) {
	n := mustNetwork(t, fmt.Sprintf(vxlanNetwork, ""))
	host := mustNetwork(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "host-gw"}}`)
	udp := mustNetwork(t, `{"Network": "10.3.0.0/16"}`)
	for want, c := range map[string]MapperConfig{
		"Network: it is needed":                        {},
		"VRF: : it is needed without Host":             {Network: n, Own: ownLease(n)},
		"Own.Subnet: none: must be in the network":     {Network: n, VRF: "x"},
		"Generation: 4: must be 1 to 3, or 0 for 3":    {Network: n, Own: ownLease(n), VRF: "x", Generation: 4},
		"Direct: 0: it is needed with backend host-gw": {Network: host, Own: ownLease(host), VRF: "x"},
		"Generation: 1: must be 0 or 3":                {Network: host, Own: ownLease(host), VRF: "x", Direct: 9, Generation: 1},
		"must be one of vxlan, host-gw, ipip, udp":     {Network: mustNetwork(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "alloc"}}`), VRF: "x"},
		"Host: true: must be false with backend udp":   {Network: udp, Own: ownLease(udp), Host: true},
	} {
		if _, err := NewMapper(&c); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := NewMapper(nil); err == nil {
		t.Error("nil: no error")
	}
}
