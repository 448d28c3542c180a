package rules

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/policy"
)

// The sets of plans, by name, and what is in them.
type sets struct {
	store  *model.Store
	things map[resource.Key]*thing
	nets   map[string]*set[netip.Prefix]
	ports  map[string]*set[policy.Endpoint]
	work   *Work
}

// A thing has addresses that selectors choose.
type thing struct {
	labels   []selector.Labels
	profiles []string
	nets     []netip.Prefix
	ports    []resource.NamedPort
}

// thing returns what a key is, nil if it is none, or could not be read.
func (s *sets) thing(k resource.Key) *thing {
	switch k.Kind {
	case resource.KindWorkload, resource.KindHost:
		if e := model.One[resource.Endpoint](s.store, k.Kind, k.Name); e != nil {
			t := &thing{labels: s.labels(e.Labels, e.Profiles), profiles: e.Profiles, ports: e.Ports}
			for _, a := range e.Addrs {
				t.nets = append(t.nets, netip.PrefixFrom(a, a.BitLen()))
			}
			return t
		}
	case resource.KindGlobalSet, resource.KindSet:
		if e := model.One[resource.Set](s.store, k.Kind, k.Name); e != nil {
			profiles := []string{e.Profile}
			return &thing{labels: s.labels(e.Labels, profiles), profiles: profiles, nets: e.Nets}
		}
	}
	return nil
}

// read reads what has addresses.
func (s *sets) read(store *model.Store, work *Work) {
	*s = sets{store: store, things: map[resource.Key]*thing{}, nets: map[string]*set[netip.Prefix]{}, ports: map[string]*set[policy.Endpoint]{}, work: work}
	for _, k := range []resource.Kind{resource.KindWorkload, resource.KindHost, resource.KindGlobalSet, resource.KindSet} {
		for name := range store.Names(k) {
			key := resource.Key{Kind: k, Name: name}
			if t := s.thing(key); t != nil {
				s.things[key] = t
			}
		}
	}
}

// change reads a thing again.
func (s *sets) change(k resource.Key) {
	was, is := s.things[k], s.thing(k)
	if is == nil {
		delete(s.things, k)
	} else {
		s.things[k] = is
	}
	if reflect.DeepEqual(was, is) {
		return
	}
	for _, x := range s.nets {
		x.replace(was, is)
	}
	for _, x := range s.ports {
		x.replace(was, is)
	}
}

// profile reads the things again that have a profile, whose labels are theirs.
func (s *sets) profile(name string) {
	for k, t := range s.things {
		if slices.Contains(t.profiles, name) {
			s.change(k)
		}
	}
}

// addrs returns the name of the set of addresses that a selector chooses, none for nil.
func (s *sets) addrs(of *selector.Selector) []string {
	if of == nil {
		return nil
	}
	name := short(of.String())
	if s.nets[name] == nil {
		s.nets[name] = newSet(s.things, netip.Prefix.Compare, func(t *thing) []netip.Prefix {
			if s.work.Selected++; !of.Matches(t.labels...) {
				return nil
			}
			return t.nets
		})
	}
	return []string{name}
}

// named returns the name of the set of ports with a name, of a protocol or of all, and of whom a selector chooses or of all.
func (s *sets) named(port string, protocol uint8, of *selector.Selector) string {
	of = selector.And(of)
	name := short(fmt.Sprintf("%s, protocol %d, of %s", port, protocol, of))
	if s.ports[name] == nil {
		s.ports[name] = newSet(s.things, comparePorts, func(t *thing) (list []policy.Endpoint) {
			if len(t.ports) == 0 {
				return nil
			}
			if s.work.Selected++; !of.Matches(t.labels...) {
				return nil
			}
			for _, p := range t.ports {
				if p.Name != port || protocol != 0 && protocol != p.Protocol {
					continue
				}
				for _, n := range t.nets {
					list = append(list, policy.Endpoint{Addr: n.Addr(), Protocol: p.Protocol, Port: p.Port})
				}
			}
			return list
		})
	}
	return name
}

func comparePorts(a, b policy.Endpoint) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
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
				cfg.Sets[name] = s.nets[name].list
			}
		}
		for _, list := range [][]string{r.SrcPortSets, r.DstPortSets, r.NotSrcPortSets, r.NotDstPortSets} {
			for _, name := range list {
				cfg.PortSets[name] = s.ports[name].list
			}
		}
	}
}

// again returns a config with the sets as they are now, itself if they are as they were.
func (s *sets) again(cfg *policy.Config) *policy.Config {
	nets, ports := again(cfg.Sets, s.nets), again(cfg.PortSets, s.ports)
	if nets == nil && ports == nil {
		return cfg
	}
	is := *cfg
	if nets != nil {
		is.Sets = nets
	}
	if ports != nil {
		is.PortSets = ports
	}
	return &is
}

// use notes that a config has sets.
func (s *sets) use(cfg *policy.Config) {
	for name := range cfg.Sets {
		s.nets[name].used = true
	}
	for name := range cfg.PortSets {
		s.ports[name].used = true
	}
}
