package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/node"
)

// owned returns the ports that have an owner, with their places in segments, as a configuration of its own.
func owned(c *node.Config) *node.Config {
	part, has := new(node.Config), map[string]bool{}
	for _, p := range c.Ports {
		if p.Owner != "" {
			part.Ports, has[p.Name] = append(part.Ports, p), true
		}
	}
	for _, g := range c.Segments {
		members := slices.DeleteFunc(slices.Clone(g.Members), func(m node.Member) bool { return !has[m.Port] })
		if len(members) > 0 {
			part.Segments = append(part.Segments, node.Segment{VNI: g.VNI, Members: members})
		}
	}
	return part
}

// adopt returns c with the ports of part, and their members in its segments. It leaves out a port if c has one with the same name and
// another owner, or none.
func adopt(c, part *node.Config) (*node.Config, error) {
	if len(part.Ports) == 0 {
		return c, nil
	}
	x := *c
	x.Ports, x.Segments = slices.Clone(c.Ports), slices.Clone(c.Segments)
	owner := map[string]string{} // of those that are adopted
	for _, p := range part.Ports {
		at := slices.IndexFunc(x.Ports, func(q node.Port) bool { return q.Name == p.Name })
		if at < 0 {
			x.Ports = append(x.Ports, p)
		}
		if at < 0 || x.Ports[at].Owner == p.Owner {
			owner[p.Name] = p.Owner
		}
	}
	for _, g := range part.Segments {
		members := slices.DeleteFunc(slices.Clone(g.Members), func(m node.Member) bool { return owner[m.Port] == "" })
		if len(members) == 0 {
			continue
		}
		at := slices.IndexFunc(x.Segments, func(s node.Segment) bool { return s.VNI == g.VNI })
		if at < 0 {
			name := members[0].Port
			return nil, fmt.Errorf("segments[vni %v]: is in use: ports[%s] of %s is in it", g.VNI, name, owner[name])
		}
		s := &x.Segments[at]
		s.Members = slices.Clone(s.Members)
		for _, m := range members {
			if !slices.ContainsFunc(s.Members, func(n node.Member) bool { return n.Port == m.Port && n.VLAN == m.VLAN && n.Service == m.Service }) {
				s.Members = append(s.Members, m)
			}
		}
	}
	return &x, x.Check()
}

// adopting is an edit that leaves ports with an owner where they are.
func adopting(next edit) edit {
	return func(old *file.Config) (*file.Config, error) {
		c, err := next(old)
		if err != nil {
			return nil, err
		}
		return ofNode(func(c *node.Config) (*node.Config, error) { return adopt(c, owned(&old.Config)) })(c)
	}
}

// ownedFile returns the file that has the ports with an owner, "" if there is none. It is beside the socket, over which they came,
// in a folder that a restart of the host empties as it does their devices.
func ownedFile(socket string) string {
	if socket == "" {
		return ""
	}
	return socket + ".ports"
}

// saveOwned writes the ports with an owner of a configuration, so that the next start has them.
func saveOwned(c *node.Config) error {
	path, part := ownedFile(c.Control.Socket), owned(c)
	if path == "" {
		return nil
	}
	if len(part.Ports) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := part.MarshalJSON()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".vxs")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// restoreOwned returns a configuration with the ports that owners had added before the last end. It leaves out, with a line for
// each, what has no place any more.
func restoreOwned(c *node.Config, errs io.Writer) *node.Config {
	path := ownedFile(c.Control.Socket)
	text, err := readFile(path, maxFile, slowFile)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return c
	}
	part := new(node.Config)
	if err == nil {
		err = part.UnmarshalJSON(text)
	}
	if err != nil {
		complain(errs, fmt.Errorf("ports of other programs are lost: %s: %w", path, err))
		return c
	}
	if all, err := adopt(c, part); err == nil {
		return all
	}
	for _, p := range part.Ports {
		one := &node.Config{Ports: []node.Port{p}, Segments: part.Segments}
		if next, err := adopt(c, owned(one)); err == nil {
			c = next
		} else {
			complain(errs, fmt.Errorf("port %q of %s is left out: %w", p.Name, p.Owner, err))
		}
	}
	return c
}

// withoutGone returns the configuration without the ports whose device its owner has deleted while no node ran, nil if there are none.
func withoutGone(n *node.Node) *node.Config {
	gone := map[string]bool{}
	for _, p := range n.Down() {
		gone[p.Name] = errors.Is(p.Err, syscall.ENODEV) || errors.Is(p.Err, fs.ErrNotExist)
	}
	c := *n.Config()
	before := len(c.Ports)
	for _, p := range owned(&c).Ports {
		if gone[p.Name] {
			c.Ports = slices.DeleteFunc(slices.Clone(c.Ports), func(q node.Port) bool { return q.Name == p.Name })
			c.Segments = withoutMember(c.Segments, p.Name)
		}
	}
	if len(c.Ports) == before {
		return nil
	}
	return &c
}

// withoutMember returns segments without a port.
func withoutMember(list []node.Segment, name string) []node.Segment {
	list = slices.Clone(list)
	for i := range list {
		list[i].Members = slices.DeleteFunc(slices.Clone(list[i].Members), func(m node.Member) bool { return m.Port == name })
	}
	return list
}

// newOwned returns an error for a port with an owner that a change has added without opening its device: at the start it would be
// down until it opens.
func newOwned(n *node.Node, old *node.Config) error {
	had := owned(old).Ports
	for _, p := range n.Down() {
		is := func(q node.Port) bool { return q.Name == p.Name }
		if slices.ContainsFunc(owned(n.Config()).Ports, is) && !slices.ContainsFunc(had, is) {
			return p.Err
		}
	}
	return nil
}
