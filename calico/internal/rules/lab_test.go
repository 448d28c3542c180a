package rules

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/policy"
)

const prefixKey = "/calico/resources/v3/projectcalico.org/"

// data is resources by key; a value that begins with "spec" of one is the inside of it.
type data map[string]string

func (d data) store() *model.Store {
	s := new(model.Store)
	for key, value := range d {
		s.Put(prefixKey+key, []byte(value))
	}
	return s
}

// and returns the resources of several.
func (d data) and(more data) data {
	all := data{}
	for _, m := range []data{d, more} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

func spec(text string) string { return `{"spec":{` + text + `}}` }

// workload returns the resource of a workload endpoint of node n in the namespace of its name, with labels, addresses and more of its spec.
func workload(labels, addrs, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"metadata":{"labels":{%s}},"spec":{"node":"n","interfaceName":"cali1","ipNetworks":[%s]%s}}`, labels, addrs, more)
}

// A packet is one of IP.
type packet struct {
	src, dst     netip.Addr
	protocol     uint8
	sport, dport uint16
	typ, code    uint8
}

// parse reads a packet such as "10.0.0.1:1000 > 10.0.0.2:80 tcp" or "fd00::1 > fd00::2 icmp6 128/0".
func parse(t testing.TB, text string) (p packet) {
	t.Helper()
	words := strings.Fields(text)
	end := func(text string) (netip.Addr, uint16) {
		if a, err := netip.ParseAddr(text); err == nil {
			return a, 0
		}
		a := check.Must(netip.ParseAddrPort(text))(t)
		return a.Addr(), a.Port()
	}
	p.src, p.sport = end(words[0])
	p.dst, p.dport = end(words[2])
	p.protocol = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "gre": 47, "icmp6": 58, "sctp": 132}[words[3]]
	if len(words) > 4 {
		check.Must(fmt.Sscanf(words[4], "%d/%d", &p.typ, &p.code))(t)
	}
	return p
}

// frame returns the packet, with headers as short as they can be.
func (p *packet) frame() frame.Frame {
	body := make([]byte, 20)
	switch p.protocol {
	case 1, 58:
		body[0], body[1] = p.typ, p.code
	case 6, 17, 132:
		binary.BigEndian.PutUint16(body, p.sport)
		binary.BigEndian.PutUint16(body[2:], p.dport)
		if p.protocol == 17 {
			body[5] = 20
		}
		if p.protocol == 6 {
			body[12], body[13] = 5<<4, 2
		}
	}
	var b []byte
	kind := frame.IPv4
	if p.src.Is4() {
		b = append(make([]byte, 12), append(p.src.AsSlice(), p.dst.AsSlice()...)...)
		b[0], b[3], b[8], b[9] = 0x45, 40, 64, p.protocol
	} else {
		kind = frame.IPv6
		b = append(make([]byte, 8), append(p.src.AsSlice(), p.dst.AsSlice()...)...)
		b[0], b[5], b[6], b[7] = 0x60, 20, p.protocol, 64
	}
	f := frame.Make(append(b, body...))
	f.VNI, f.From, f.Kind = 100, frame.NewDest(1, 0), kind
	return f
}

// judge reports whether a config lets a packet into a workload, or out of it.
func judge(t testing.TB, cfg *policy.Config, in bool, list ...packet) (passed []bool) {
	t.Helper()
	c := *cfg
	c.Stateless = true
	p := check.Must(policy.New(&c))(t)
	stage := p.Ingress()
	if in {
		stage = p.Egress()
	}
	for _, x := range list {
		f := x.frame()
		v := stage.Process(&f, frame.At{Tick: 10, Worker: 1})
		if s := p.Stats(); s.Malformed > 0 {
			t.Fatalf("%+v is malformed", x)
		}
		passed = append(passed, v == frame.Continue)
	}
	return passed
}

// of returns the endpoint of a plan with a name.
func of(t testing.TB, plan *Plan, name string) *Endpoint {
	t.Helper()
	for i := range plan.Endpoints {
		if plan.Endpoints[i].Name == name {
			return &plan.Endpoints[i]
		}
	}
	t.Fatalf("no endpoint %s", name)
	return nil
}
