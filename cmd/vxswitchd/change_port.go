package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting"
)

// postPort adds a port to the configuration or deletes it, with its place in segments.
func (s *server) postPort(w http.ResponseWriter, r *http.Request) error {
	return s.setConfig(w, r, func(text []byte) (edit, error) {
		x, err := decodeChange[api.PortChange](text)
		if err != nil {
			return nil, err
		}
		if err := oneOf("op", x.Op, api.Add, api.Del); err != nil {
			return nil, err
		}
		return ofNode(func(old *node.Config) (*node.Config, error) {
			c := *old
			c.Ports, c.Segments = slices.Clone(c.Ports), slices.Clone(c.Segments)
			if x.Op == api.Del {
				return deletePort(&c, x)
			}
			if err := addPort(&c, x); err != nil {
				return nil, err
			}
			return &c, portErrors(&c, x, c.Check())
		}), nil
	})
}

// portErrors returns errors with the keys of a change, those elsewhere with the keys of the configuration.
func portErrors(c *node.Config, x api.PortChange, err error) error {
	errs := setting.Errors{}
	if !errors.As(err, &errs) {
		return err
	}
	at := []string{fmt.Sprintf("ports[%d].", len(c.Ports)-1)}
	for i, s := range c.Segments {
		if x.VNI != nil && s.VNI == *x.VNI {
			at = append(at, fmt.Sprintf("segments[%d].members[%d].", i, len(s.Members)-1))
		}
	}
	var lines []string
	for _, e := range errs {
		y := *e
		for _, prefix := range at {
			y.Path = strings.TrimPrefix(y.Path, prefix)
		}
		lines = append(lines, y.Error())
	}
	return wrong(http.StatusUnprocessableEntity, "%s", strings.Join(lines, "; "))
}

func addPort(c *node.Config, x api.PortChange) error {
	if slices.ContainsFunc(c.Ports, func(p node.Port) bool { return p.Name == x.Name }) {
		return wrong(http.StatusConflict, "ports: there is a %q", x.Name)
	}
	p := node.Port{Name: x.Name, Owner: x.Owner}
	p.MTU, p.Queues, p.Namespace = x.MTU, x.Queues, x.Namespace
	if x.Type != "" {
		if err := cmp.Or(oneOf("type", x.Type, api.PortTypes...), p.Type.UnmarshalText([]byte(x.Type))); err != nil {
			return err
		}
	}
	c.Ports = append(c.Ports, p)
	if x.VNI == nil {
		if x.VLAN != 0 {
			return wrong(http.StatusBadRequest, "vlan: requires vni")
		}
		if x.Service {
			return wrong(http.StatusBadRequest, "service: requires vlan")
		}
		return nil
	}
	at := slices.IndexFunc(c.Segments, func(s node.Segment) bool { return s.VNI == *x.VNI })
	if at < 0 {
		return wrong(http.StatusNotFound, "vni %d: no such segment", *x.VNI)
	}
	members := slices.Clone(c.Segments[at].Members)
	c.Segments[at].Members = append(members, node.Member{Port: x.Name, VLAN: x.VLAN, Service: x.Service})
	return nil
}

func deletePort(c *node.Config, x api.PortChange) (*node.Config, error) {
	if x != (api.PortChange{Op: x.Op, Name: x.Name}) {
		return nil, wrong(http.StatusBadRequest, "del: takes only name")
	}
	if !slices.ContainsFunc(c.Ports, func(p node.Port) bool { return p.Name == x.Name }) {
		return nil, wrong(http.StatusNotFound, "ports: there is no %q", x.Name)
	}
	c.Segments = withoutMember(c.Segments, x.Name)
	next, err := c.Without("ports", x.Name)
	if errs := (setting.Errors{}); errors.As(err, &errs) {
		return nil, wrong(http.StatusUnprocessableEntity, "%s", oneLine(errs))
	}
	return next, err
}
