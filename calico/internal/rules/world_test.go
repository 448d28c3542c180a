package rules

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A world is resources at random, as Calico's API has them.
type world struct {
	things   []wThing
	profiles map[string]wProfile
	tiers    map[string]wTier
	policies []wPolicy
	vague    bool // a rule asks what only Calico can answer
	draw     *check.Draw
}

// A wThing is an endpoint or a network set.
type wThing struct {
	key, namespace, node string
	labels               map[string]string
	addrs                []netip.Prefix
	profiles             []string
	account              string
	ports                []wPort
}

type wPort struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port"`
}

type wProfile struct {
	LabelsToApply   map[string]string `json:"labelsToApply,omitempty"`
	Ingress, Egress []wRule           `json:",omitempty"`
}

type wTier struct {
	Order         *float64 `json:"order,omitempty"`
	DefaultAction string   `json:"defaultAction,omitempty"`
}

type wPolicy struct {
	kind, namespace, name string

	Tier                   string   `json:"tier,omitempty"`
	Order                  *float64 `json:"order,omitempty"`
	Selector               string   `json:"selector,omitempty"`
	NamespaceSelector      string   `json:"namespaceSelector,omitempty"`
	ServiceAccountSelector string   `json:"serviceAccountSelector,omitempty"`
	Types                  []string `json:"types,omitempty"`
	Ingress                []wRule  `json:"ingress,omitempty"`
	Egress                 []wRule  `json:"egress,omitempty"`
}

type wRule struct {
	Action      string  `json:"action"`
	IPVersion   int     `json:"ipVersion,omitempty"`
	Protocol    string  `json:"protocol,omitempty"`
	NotProtocol string  `json:"notProtocol,omitempty"`
	ICMP        *wICMP  `json:"icmp,omitempty"`
	NotICMP     *wICMP  `json:"notICMP,omitempty"`
	Source      wEntity `json:"source"`
	Destination wEntity `json:"destination"`
	Cloud       string  `json:"cloud,omitempty"` // which is not of the API that we know
}

type wICMP struct {
	Type *uint8 `json:"type,omitempty"`
	Code *uint8 `json:"code,omitempty"`
}

type wEntity struct {
	Nets              []string   `json:"nets,omitempty"`
	NotNets           []string   `json:"notNets,omitempty"`
	Selector          string     `json:"selector,omitempty"`
	NotSelector       string     `json:"notSelector,omitempty"`
	NamespaceSelector string     `json:"namespaceSelector,omitempty"`
	Ports             []any      `json:"ports,omitempty"`
	NotPorts          []any      `json:"notPorts,omitempty"`
	ServiceAccounts   *wAccounts `json:"serviceAccounts,omitempty"`
	Services          *wAccounts `json:"services,omitempty"`
}

type wAccounts struct {
	Names    []string `json:"names,omitempty"`
	Selector string   `json:"selector,omitempty"`
}

// some is an element of a list in one of k cases.
func some[T any](d *check.Draw, k int, list ...T) (none T) {
	if d.N(k) != 1 {
		return none
	}
	return check.Pick(d, list...)
}

// newWorld makes one of bytes.
func newWorld(b []byte) *world {
	d := (*check.Draw)(&b)
	w := &world{draw: d, profiles: map[string]wProfile{}, tiers: map[string]wTier{}}
	for i := range 4 + d.N(4) {
		w.things = append(w.things, w.endpoint(i))
	}
	for i := range d.N(4) {
		t := wThing{key: fmt.Sprintf("globalnetworksets/s%d", i), labels: w.labels(), addrs: w.nets(d.N(3))}
		if d.N(2) == 1 {
			t.namespace = check.Pick(d, "x", "y")
			t.key, t.profiles = fmt.Sprintf("networksets/%s/s%d", t.namespace, i), []string{"kns." + t.namespace}
		}
		w.things = append(w.things, t)
	}
	for _, name := range []string{"kns.x", "kns.y", "p"} {
		if d.N(8) != 1 {
			w.profiles[name] = wProfile{map[string]string{"pcns.env": check.Pick(d, "1", "2"), "pcsa.r": check.Pick(d, "1", "2"), "a": "3"}, w.rules(2), w.rules(2)}
		}
	}
	order := func() *float64 { return some(d, 2, new(1.0), new(2.0), new(-3.5)) }
	for _, name := range []string{"default", "t1", "t2"} {
		if d.N(6) != 1 {
			w.tiers[name] = wTier{order(), check.Pick(d, "", "Deny", "Pass", "Pass")}
		}
	}
	for i := range d.N(6) {
		p := wPolicy{kind: "globalnetworkpolicies", name: fmt.Sprint("p", i), Tier: check.Pick(d, "", "default", "t1", "t2"), Order: order()}
		if d.N(2) == 1 {
			p.kind, p.namespace, p.name = "networkpolicies", check.Pick(d, "x", "y"), fmt.Sprint("p", d.N(2))
		} else {
			p.NamespaceSelector = some(d, 3, "env == '1'", "all()", "!has(env)")
		}
		p.Selector = some(d, 2, w.selector(), "all()", "projectcalico.org/namespace == 'x'")
		p.ServiceAccountSelector = some(d, 4, "r == '1'", "!has(r)")
		p.Types = check.Pick(d, nil, []string{"Ingress"}, []string{"Egress"}, []string{"Ingress", "Egress"})
		p.Ingress, p.Egress = w.rules(4), w.rules(4)
		w.policies = append(w.policies, p)
	}
	return w
}

func (w *world) labels() map[string]string {
	d := w.draw
	return map[string]string{"a": check.Pick(d, "1", "2"), check.Pick(d, "b", "c"): check.Pick(d, "1", "2", "12")}
}

// nets returns some networks of the addresses that there are.
func (w *world) nets(n int) (list []netip.Prefix) {
	for range n {
		list = append(list, netip.MustParsePrefix(check.Pick(w.draw, "10.0.0.0/30", "10.0.0.4/30", "10.0.0.3/32", "fd00::/126", "fd00::4/126", "fd00::3/128")))
	}
	return list
}

func (w *world) texts(n int) (list []string) {
	for _, p := range w.nets(n) {
		list = append(list, p.String())
	}
	return list
}

func (w *world) endpoint(i int) wThing {
	d := w.draw
	t := wThing{namespace: check.Pick(d, "x", "y"), node: check.Pick(d, "n", "n", "m"), labels: w.labels(), account: some(d, 2, "u", "v")}
	t.key = fmt.Sprintf("workloadendpoints/%s/%s-k8s-w%d-eth0", t.namespace, t.node, i)
	n := 1 + (i+d.N(4)/3)%7 // sometimes that of another one
	t.addrs = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 32), netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("fd00::%d", n)), 128)}
	t.profiles = check.Pick(d, nil, []string{"kns." + t.namespace}, []string{"p", "kns." + t.namespace, "p"}, []string{"gone", "p"}, []string{"projectcalico-default-allow"})
	for range d.N(3) {
		t.ports = append(t.ports, wPort{check.Pick(d, "http", "dns"), check.Pick(d, "TCP", "UDP", "SCTP"), uint16(80 + d.N(3))})
	}
	return t
}

func (w *world) selector() string {
	d := w.draw
	s := check.Pick(d, "a == '1'", "a != '2'", "b in {'1','12'}", "c not in {'1'}", "has(b)", "!has(c)", "b contains '2'", "c starts with '1'", "b ends with '2'", "all()", "pcns.env == '1'", "a == '3'")
	if d.N(4) == 1 {
		s = "(" + s + check.Pick(d, ") && (", ") || (") + w.selector() + ")"
	}
	return s
}

func (w *world) rules(most int) (list []wRule) {
	for range w.draw.N(most + 1) {
		list = append(list, w.rule())
	}
	return list
}

func (w *world) rule() (r wRule) {
	d := w.draw
	r = wRule{Action: check.Pick(d, "Allow", "Deny", "Pass", "Log"), Protocol: some(d, 2, "TCP", "UDP", "SCTP", "ICMP", "ICMPv6"), NotProtocol: some(d, 8, "TCP", "UDP", "ICMP", "ICMPv6")}
	if r.Protocol != "ICMP" && r.Protocol != "ICMPv6" && r.NotProtocol != "ICMP" && r.NotProtocol != "ICMPv6" {
		r.IPVersion = some(d, 5, 4, 6)
	}
	if r.Protocol == "ICMP" || r.Protocol == "ICMPv6" {
		r.ICMP = some(d, 2, &wICMP{Type: new(uint8(3))}, &wICMP{new(uint8(3)), new(uint8(1))}, &wICMP{})
		r.NotICMP = some(d, 3, &wICMP{Type: new(uint8(8))}, &wICMP{new(uint8(3)), new(uint8(1))})
	}
	r.Source, r.Destination = w.entity(r.Protocol), w.entity(r.Protocol)
	if d.N(24) == 1 {
		r.Cloud, w.vague = "x", true
	}
	w.vague = w.vague || r.Source.Services != nil || r.Destination.Services != nil
	return r
}

func (w *world) entity(protocol string) (e wEntity) {
	d := w.draw
	if d.N(3) > 1 {
		return e
	}
	if d.N(5) == 1 {
		e.Nets = w.texts(1 + d.N(2))
	}
	if d.N(5) == 1 {
		e.NotNets = w.texts(1 + d.N(2))
	}
	if d.N(3) == 1 {
		e.Selector = w.selector()
	}
	if d.N(5) == 1 {
		e.NotSelector = w.selector()
	}
	e.NamespaceSelector = some(d, 5, "all()", "global()", "env == '1'", "!has(env)", "env != '2'")
	if d.N(6) == 1 {
		e.ServiceAccounts = check.Pick(d, &wAccounts{Names: []string{"u", "z"}}, &wAccounts{Selector: "r == '1'"}, &wAccounts{[]string{"v"}, "has(r)"}, &wAccounts{})
	}
	e.Services = some(d, 24, &wAccounts{Names: []string{"svc"}})
	if e.Services != nil {
		e.Services = &wAccounts{}
	}
	switch protocol {
	case "TCP", "UDP", "SCTP":
		if d.N(2) == 1 {
			e.Ports = check.Pick(d, []any{80}, []any{"81:82"}, []any{"http"}, []any{"http", 82}, []any{"dns", "http"})
		}
		if d.N(3) == 1 {
			e.NotPorts = check.Pick(d, []any{80}, []any{"81:82", 79}, []any{"http"}, []any{"dns", 82})
		}
	case "":
		if d.N(8) == 1 {
			e.Ports = check.Pick(d, []any{"http"}, []any{"dns", "http"})
		}
	}
	return e
}

// store returns the world as the datastore has it.
func (w *world) store() *model.Store { return w.data().store() }

func (w *world) data() data {
	d := data{}
	put := func(key string, metadata, spec any) {
		text, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
		if err != nil {
			panic(err)
		}
		d[key] = string(text)
	}
	for _, t := range w.things {
		meta := map[string]any{"labels": t.labels}
		var nets []string
		for _, p := range t.addrs {
			nets = append(nets, p.String())
		}
		if t.node == "" {
			put(t.key, meta, map[string]any{"nets": nets})
			continue
		}
		put(t.key, meta, map[string]any{"node": t.node, "ipNetworks": nets, "profiles": t.profiles, "serviceAccountName": t.account, "ports": t.ports})
	}
	for name, p := range w.profiles {
		put("profiles/"+name, nil, p)
	}
	for name, t := range w.tiers {
		put("tiers/"+name, nil, t)
	}
	for _, p := range w.policies {
		put(p.key(), nil, p)
	}
	return d
}

func (p *wPolicy) key() string {
	if p.namespace != "" {
		return p.kind + "/" + p.namespace + "/" + p.name
	}
	return p.kind + "/" + p.name
}
