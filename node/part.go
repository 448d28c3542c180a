package node

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// With returns the configuration with an element of a list, such as "ports", replaced by text: JSON with comments, as in a file. The
// name of a segment is its VNI. If no element has the name, text is added at the end. Errors are [setting.Errors], as those of
// [Parse]. Errors in text have its positions and keys, others the keys of the configuration and no position.
func (c *Config) With(list, name string, text []byte) (*Config, error) {
	x := *c
	p, err := x.part(list)
	if err != nil {
		return nil, err
	}
	if _, err := strconv.ParseUint(name, 10, 24); err != nil && list == "segments" {
		return nil, setting.Errors{{Path: list, Value: name, Allowed: "a VNI, 0 to 16777215"}}
	}
	r, at, err := p.set(name, text)
	if err != nil {
		return nil, err
	}
	inside, outside := "", setting.Errors{}
	if list, ok := errorsOf((checker{file: true}).check(&x)); ok {
		inside = fmt.Sprintf("%s[%d]", p.key, at)
		var in setting.Errors
		for _, e := range list {
			if rest, ok := strings.CutPrefix(e.Path, inside); ok {
				y := *e
				y.Path = strings.TrimPrefix(rest, ".")
				in = append(in, &y)
			} else {
				outside = append(outside, e)
			}
		}
		if len(in) > 0 {
			r.Ask("", x, func() error { return in })
		}
	}
	found, _ := errorsOf(r.Err())
	if all := append(found, outside...); len(all) > 0 {
		return nil, all
	}
	return &x, nil
}

// Without returns the configuration without an element of a list. It returns an error if there is none with the name, or another
// element refers to it.
func (c *Config) Without(list, name string) (*Config, error) {
	x := *c
	p, err := x.part(list)
	if err != nil {
		return nil, err
	}
	if !p.del(name) {
		return nil, fmt.Errorf("node: %s: there is no %q", list, name)
	}
	err = x.Check()
	if errs, ok := errorsOf(err); ok {
		return nil, x.inUse(p.path(name), name, errs)
	}
	if err != nil {
		return nil, err
	}
	return &x, nil
}

// inUse turns errors of a configuration that lacks an element into errors of the element, which say what refers to it.
func (c *Config) inUse(path, name string, errs setting.Errors) error {
	in := setting.Errors{}
	for _, e := range errs {
		text := "is in use: " + c.named(e.Path)
		switch {
		case e.Value == nil:
			text += ": " + e.Reason()
		case strings.Trim(e.Shown(), `"`) != name:
			text += ": " + e.Shown() + ": " + e.Reason()
		}
		in = append(in, &setting.Error{Path: path, Text: text})
	}
	return in
}

// named returns a path with the name of the element of a list in place of its number.
func (c *Config) named(path string) string {
	key, rest, _ := strings.Cut(path, "[")
	number, rest, ok := strings.Cut(rest, "]")
	p, err := c.part(key)
	i, wrong := strconv.Atoi(number)
	if !ok || err != nil || wrong != nil {
		return path
	}
	return p.path(p.name(i)) + rest
}

func errorsOf(err error) (setting.Errors, bool) {
	var list setting.Errors
	return list, errors.As(err, &list)
}

// A part is a list of a configuration.
type part struct {
	key string
	set func(name string, text []byte) (r *conf.Report, at int, err error)
	del func(name string) bool

	name func(i int) string
}

// path returns the path of an element by its name, for texts: a number alone is an index there.
func (p *part) path(name string) string {
	if p.key == "segments" {
		name = "vni " + name
	}
	return p.key + "[" + name + "]"
}

// lists returns the lists that With and Without change.
func (c *Config) lists() []part {
	return []part{
		partOf("tunnels", &c.Tunnels, "name", func(x *Tunnel) string { return x.Name }),
		partOf("ports", &c.Ports, "name", func(x *Port) string { return x.Name }),
		partOf("policies", &c.Policies, "name", func(x *Policy) string { return x.Name }),
		partOf("segments", &c.Segments, "vni", func(x *Segment) string { return x.VNI.String() }),
		partOf("vrfs", &c.VRFs, "name", func(x *VRF) string { return x.Name }),
	}
}

func (c *Config) part(list string) (part, error) {
	var keys []string
	for _, p := range c.lists() {
		if keys = append(keys, p.key); p.key == list {
			return p, nil
		}
	}
	return part{}, fmt.Errorf("node: %q: must be one of %s", list, strings.Join(keys, ", "))
}

// partOf returns the part of a list whose elements have a name. Its functions replace the list, and leave the old one as it is.
func partOf[T any](key string, list *[]T, nameKey string, nameOf func(*T) string) part {
	find := func(name string) int {
		return slices.IndexFunc(*list, func(x T) bool { return nameOf(&x) == name })
	}
	return part{key, func(name string, text []byte) (*conf.Report, int, error) {
		var x T
		r, err := conf.Read(text, &x, renamed)
		if err != nil {
			return nil, 0, err
		}
		if is := nameOf(&x); is != name && !r.Failed(nameKey) {
			r.Want(nameKey, is, "%s, as the element is called", name)
		}
		if err := r.Err(); err != nil {
			return nil, 0, err
		}
		at := find(name)
		if *list = slices.Clone(*list); at < 0 {
			at = len(*list)
			*list = append(*list, x)
		}
		(*list)[at] = x
		return r, at, nil
	}, func(name string) bool {
		at := find(name)
		if at >= 0 {
			*list = slices.Delete(slices.Clone(*list), at, at+1)
		}
		return at >= 0
	}, func(i int) string { return nameOf(&(*list)[i]) }}
}
