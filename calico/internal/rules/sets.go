package rules

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/policy"
)

// The sets of a Plan, by name.
type sets struct {
	store  *model.Store
	things []thing
	nets   map[string][]netip.Prefix
	ports  map[string][]policy.Endpoint
}

// A thing has addresses that selectors choose.
type thing struct {
	labels []selector.Labels
	nets   []netip.Prefix
	ports  []resource.NamedPort
}

// read reads what has addresses.
func (s *sets) read(store *model.Store) {
	*s = sets{store: store, nets: map[string][]netip.Prefix{}, ports: map[string][]policy.Endpoint{}}
	for _, k := range []resource.Kind{resource.KindWorkload, resource.KindHost} {
		for _, e := range model.All[resource.Endpoint](store, k) {
			t := thing{labels: s.labels(e.Labels, e.Profiles), ports: e.Ports}
			for _, a := range e.Addrs {
				t.nets = append(t.nets, netip.PrefixFrom(a, a.BitLen()))
			}
			s.things = append(s.things, t)
		}
	}
	for _, k := range []resource.Kind{resource.KindGlobalSet, resource.KindSet} {
		for _, e := range model.All[resource.Set](store, k) {
			s.things = append(s.things, thing{labels: s.labels(e.Labels, []string{e.Profile}), nets: e.Nets})
		}
	}
}

// addrs returns the name of the set of addresses that a selector chooses.
func (s *sets) addrs(of *selector.Selector) string {
	name := short(of.String())
	if _, ok := s.nets[name]; ok {
		return name
	}
	list := []netip.Prefix{}
	for i := range s.things {
		if t := &s.things[i]; of.Matches(t.labels...) {
			list = append(list, t.nets...)
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	s.nets[name] = slices.Compact(list)
	return name
}

// named returns the name of the set of ports with a name, of a protocol or of all, and of whom a selector chooses or of all.
func (s *sets) named(port string, protocol uint8, of *selector.Selector) string {
	of = selector.And(of)
	name := short(fmt.Sprintf("%s, protocol %d, of %s", port, protocol, of))
	if _, ok := s.ports[name]; ok {
		return name
	}
	list := []policy.Endpoint{}
	for i := range s.things {
		t := &s.things[i]
		if len(t.ports) == 0 || !of.Matches(t.labels...) {
			continue
		}
		for _, p := range t.ports {
			if p.Name != port || protocol != 0 && protocol != p.Protocol {
				continue
			}
			for _, n := range t.nets {
				list = append(list, policy.Endpoint{Addr: n.Addr(), Protocol: p.Protocol, Port: p.Port})
			}
		}
	}
	slices.SortFunc(list, func(a, b policy.Endpoint) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	s.ports[name] = slices.Compact(list)
	return name
}

// maxSetName is how long the name of a set is that is all it means.
const maxSetName = 200

// short returns a text, or its beginning and a hash of it.
func short(text string) string {
	if len(text) <= maxSetName {
		return text
	}
	return fmt.Sprintf("%s... %x", strings.ToValidUTF8(text[:maxSetName], ""), sha256.Sum256([]byte(text)))
}

// of gives a config the sets that its rules name.
func (s *sets) of(cfg *policy.Config) {
	cfg.Sets, cfg.PortSets = map[string][]netip.Prefix{}, map[string][]policy.Endpoint{}
	for r := range cfg.AllRules() {
		for _, list := range [][]string{r.AllSrcSets, r.AllDstSets, r.NotSrcSets, r.NotDstSets} {
			for _, name := range list {
				cfg.Sets[name] = s.nets[name]
			}
		}
		for _, list := range [][]string{r.SrcPortSets, r.DstPortSets, r.NotSrcPortSets, r.NotDstPortSets} {
			for _, name := range list {
				cfg.PortSets[name] = s.ports[name]
			}
		}
	}
}
