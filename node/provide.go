package node

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// Provide adds tunnels, ports, policies, segments and VRFs to the configuration for an owner such as a control plane,
// in place of what it had provided before; nil removes it. [Node.Apply] and other owners leave it alone. Names and VNIs must be
// unique among all owners, with two exceptions. A VRF may have routes and pools of several owners. A segment may have
// members of several; one owner may set its Gateway, and one all its other settings.
//
// On an error nothing has changed. A configuration that lacks what an owner's parts refer to is refused, too, until they
// are removed.
func (n *Node) Provide(owner string, parts *Config) error {
	if owner == "" || owner == Owner {
		return fmt.Errorf("node: owner %q: the name of a control plane is required", owner)
	}
	n.updates.Lock()
	defer n.updates.Unlock()
	base, all, err := n.parts()
	if err != nil {
		return err
	}
	if delete(all, owner); parts != nil {
		c := setting.Clone(parts)
		if only := (Config{Tunnels: c.Tunnels, Ports: c.Ports, Policies: c.Policies, Segments: c.Segments, VRFs: c.VRFs}); !reflect.DeepEqual(only, *c) {
			return fmt.Errorf("node: owner %s: Provide: only Tunnels, Ports, Policies, Segments and VRFs are allowed", owner)
		}
		all[owner] = c
	}
	if err := n.changeParts(base, all, checker{begun: true}); err != nil {
		return fmt.Errorf("node: owner %s: %w", owner, err)
	}
	return nil
}

// parts returns copies of the configuration and of what others have provided.
func (n *Node) parts() (base *Config, provided map[string]*Config, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, nil, fmt.Errorf("node: %w", net.ErrClosed)
	}
	return setting.Clone(n.base), maps.Clone(n.provided), nil
}

// changeParts applies a configuration with what others have provided. n.updates is held.
func (n *Node) changeParts(base *Config, provided map[string]*Config, k checker) error {
	cfg := base
	if len(provided) > 0 {
		var err error
		if cfg, err = merge(base, provided); err != nil {
			return err
		}
		if err := missing(cfg, provided); err != nil {
			return err
		}
		if err := k.check(cfg); err != nil {
			return err
		}
	}
	err := n.change(cfg)
	if err == nil {
		n.mu.Lock()
		n.base, n.provided = base, provided
		n.mu.Unlock()
		n.sw.Settle() // no frame goes by the old configuration when the call returns
	}
	return err
}

// missing returns an error if a member that others have provided has no port. check would name a place that is in no file.
func missing(cfg *Config, provided map[string]*Config) error {
	ports := map[string]bool{}
	for i := range cfg.Ports {
		ports[cfg.Ports[i].Name] = true
	}
	for _, owner := range slices.Sorted(maps.Keys(provided)) {
		for _, s := range provided[owner].Segments {
			for _, m := range s.Members {
				if !ports[m.Port] {
					return fmt.Errorf("ports: there is no %q, which owner %s has in VNI %d", m.Port, owner, s.VNI)
				}
			}
		}
	}
	return nil
}

// merge joins configurations; check finds what is there twice.
func merge(base *Config, provided map[string]*Config) (*Config, error) {
	c := setting.Clone(base)
	for _, owner := range slices.Sorted(maps.Keys(provided)) {
		p := setting.Clone(provided[owner])
		c.Tunnels = append(c.Tunnels, p.Tunnels...)
		c.Ports = append(c.Ports, p.Ports...)
		c.Policies = append(c.Policies, p.Policies...)
		for _, v := range p.VRFs {
			i := slices.IndexFunc(c.VRFs, func(x VRF) bool { return x.Name == v.Name })
			if i < 0 {
				c.VRFs = append(c.VRFs, v)
				continue
			}
			c.VRFs[i].Routes = append(c.VRFs[i].Routes, v.Routes...)
			c.VRFs[i].Pools = append(c.VRFs[i].Pools, v.Pools...)
		}
		c.Segments = append(c.Segments, p.Segments...)
	}
	return c, joinMembers(c)
}

// joinMembers adds the members of segments, and their gateway, to the segment that is there.
func joinMembers(c *Config) error {
	first := map[frame.VNI]int{}
	for i := 0; i < len(c.Segments); i++ {
		s := c.Segments[i]
		at, twice := first[s.VNI]
		if !twice {
			first[s.VNI] = i
			continue
		}
		if !joins(&s, &c.Segments[at]) {
			if !joins(&c.Segments[at], &s) {
				return errors.New(about(s.VNI) + ": is another owner's; only Members, and a Gateway if there is none, can be added")
			}
			s, c.Segments[at] = c.Segments[at], s // whoever came first had nothing else
		}
		c.Segments[at].Members = append(c.Segments[at].Members, s.Members...)
		c.Segments[at].Gateway = cmp.Or(c.Segments[at].Gateway, s.Gateway)
		c.Segments = slices.Delete(c.Segments, i, i+1)
		i--
	}
	return nil
}

// joins reports whether a segment can be added to another one: it has members, and the only gateway of both.
func joins(s, to *Segment) bool {
	return reflect.DeepEqual(*s, Segment{VNI: s.VNI, Members: s.Members, Gateway: s.Gateway}) && (s.Gateway == nil || to.Gateway == nil)
}
