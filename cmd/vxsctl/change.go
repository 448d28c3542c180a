package main

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
)

// neigh changes IP addresses and their MACs.
func (s *session) neigh(ctx context.Context, w *words) error {
	op, word := w.op, w.next()
	ip, err := netip.ParseAddr(word)
	if err != nil {
		return w.required(op, word, "the address of a host such as 192.168.7.2")
	}
	c := api.NeighbourChange{Op: op, IP: ip.String(), Router: w.flag("router")}
	keys, err := w.keys("lladdr", "dst", "dev", "vni", "tunnel")
	if err != nil {
		return err
	}
	c.MAC, c.Dst, c.Dev, c.Tunnel = keys["lladdr"], keys["dst"], keys["dev"], keys["tunnel"]
	vni := vniOf(keys)
	switch where := c.MAC != "" || c.Dst != "" || c.Dev != "" || c.Tunnel != "" || c.Router; {
	case vni == nil:
		return w.wrong("%s: requires vni, %s", op, values["vni"].text)
	case op == api.Del && where:
		return w.wrong("del: takes only vni")
	case op != api.Del && c.MAC == "":
		return w.wrong("%s: requires lladdr, %s", op, values["lladdr"].text)
	case c.Dst != "" && c.Dev != "":
		return w.wrong("%s: takes either dst or dev", op)
	case c.Tunnel != "" && c.Dst == "":
		return w.wrong("%s: tunnel requires dst ADDR", op)
	}
	c.VNI = *vni
	return s.post(ctx, "/v1/neigh", c)
}

// route changes routes.
func (s *session) route(ctx context.Context, w *words) error {
	op := w.op
	c := api.RouteChange{Op: op, Blackhole: w.verb("blackhole") != ""}
	prefix := w.next()
	if _, err := prefixOf(prefix, ""); err != nil && w.to == nil {
		return w.required(op, prefix, "a prefix such as 10.0.0.0/8, default, or blackhole and one of these")
	}
	keys, err := w.keys("via", "vni", "lladdr", "dst", "tunnel", "weight", "metric", "vrf")
	if err != nil {
		return err
	}
	c.Via, c.VNI, c.MAC, c.Dst, c.Tunnel, c.VRF = keys["via"], vniOf(keys), keys["lladdr"], keys["dst"], keys["tunnel"], keys["vrf"]
	c.Weight, c.Metric = uint8(count(keys["weight"])), uint8(count(keys["metric"]))
	c.Prefix, _ = prefixOf(prefix, c.Via)
	switch hop := c.Via != "" || c.VNI != nil || c.MAC != "" || c.Dst != ""; {
	case op != api.Del && !hop && !c.Blackhole:
		return w.wrong("%s: requires via ADDR, vni N, or blackhole before the prefix", op)
	case hop && c.Blackhole:
		return w.wrong("%s: takes either a next hop or blackhole", op)
	case c.Via != "" && (c.MAC != "" || c.Dst != ""):
		return w.wrong("%s: via is not allowed with lladdr or dst", op)
	case c.MAC != "" && c.Dst == "":
		return w.wrong("%s: lladdr requires dst ADDR", op)
	case c.Dst != "" && c.VNI == nil:
		return w.wrong("%s: dst requires vni, %s", op, values["vni"].text)
	case c.Tunnel != "" && c.Dst == "":
		return w.wrong("%s: tunnel requires dst ADDR", op)
	}
	return s.post(ctx, "/v1/route", c)
}

// prefixOf reads a prefix in the words of ip route: an address is a prefix of one host, and the default route is that of the
// family of via. The address of a peer says nothing of what is inside the tunnel.
func prefixOf(word, via string) (string, error) {
	if word == "default" {
		if a, err := netip.ParseAddr(via); err == nil && a.Is6() {
			return "::/0", nil
		}
		return "0.0.0.0/0", nil
	}
	if a, err := netip.ParseAddr(word); err == nil {
		return netip.PrefixFrom(a, a.BitLen()).String(), nil
	}
	p, err := netip.ParsePrefix(word)
	return p.String(), err
}

// port adds or deletes a port.
func (s *session) port(ctx context.Context, w *words) error {
	op := w.op
	if w.last() && op == api.Del {
		w.to.names("ports")
	}
	c := api.PortChange{Op: op, Name: w.next()}
	if c.Name == "" {
		return w.wrong("%s: requires %s", op, values["dev"].text)
	}
	var allowed []string
	if op == api.Add {
		allowed = []string{"type", "mtu", "queues", "vni", "vlan", "service", "namespace", "owner"}
	}
	keys, err := w.keys(allowed...)
	if err != nil {
		return err
	}
	c.Type, c.VNI, c.Namespace, c.Owner = keys["type"], vniOf(keys), keys["namespace"], keys["owner"]
	c.MTU, c.Queues, c.VLAN = count(keys["mtu"]), count(keys["queues"]), count(keys["vlan"])
	switch id := count(keys["service"]); {
	case id != 0 && c.VLAN != 0:
		return w.wrong("add: vlan and service exclude each other")
	case id != 0:
		c.VLAN, c.Service = id, true
	}
	switch {
	case c.VNI != nil:
	case c.Service:
		return w.wrong("add: service requires vni")
	case c.VLAN != 0:
		return w.wrong("add: vlan requires vni")
	}
	return s.post(ctx, "/v1/port", c)
}

// vniOf returns the VNI of keys, nil if there is none.
func vniOf(keys map[string]string) *frame.VNI {
	if keys["vni"] == "" {
		return nil
	}
	vni := frame.VNI(count(keys["vni"]))
	return &vni
}

// count returns a number that keys has checked; that of "" is 0.
func count(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// post makes a change. Like bridge and ip, it prints nothing.
func (s *session) post(ctx context.Context, path string, body any) error {
	text, err := s.Do(ctx, http.MethodPost, path, nil, body)
	if err == nil && s.json {
		_, err = s.out.Write(text)
	}
	return err
}
