package resource

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/policy"
)

type rawEntity struct {
	Nets              []string          `json:"nets"`
	Selector          string            `json:"selector"`
	NamespaceSelector string            `json:"namespaceSelector"`
	Services          json.RawMessage   `json:"services"`
	Ports             []json.RawMessage `json:"ports"`
	NotNets           []string          `json:"notNets"`
	NotSelector       string            `json:"notSelector"`
	NotPorts          []json.RawMessage `json:"notPorts"`
	ServiceAccounts   *rawAccounts      `json:"serviceAccounts"`
}

type rawAccounts struct {
	Names    []string `json:"names"`
	Selector string   `json:"selector"`
}

// entity reads the conditions on one end. Of a list with a mistake nothing is read: the rest of it would be about less.
func (x *reader) entity(field string, r *rawEntity, e *Entity) {
	if given(r.Services) {
		x.wrong(fmt.Errorf("%s.services is not carried: services are not in the datastore", field))
	}
	var err error
	e.Nets, err = readNets(field+".nets", r.Nets)
	x.wrong(err)
	e.NotNets, err = readNets(field+".notNets", r.NotNets)
	x.wrong(err)
	x.ports(field+".ports", r.Ports, x.Protocol == 0, &e.Ports, &e.Names)
	x.ports(field+".notPorts", r.NotPorts, false, &e.NotPorts, &e.NotNames) // without a protocol this is about what has no ports, too
	if err := r.selectors(field, x.namespace, e); err != nil {
		x.wrong(err)
		e.Selector, e.NotSelector, e.NotNames = nil, nil, nil
	}
}

func readNets(field string, list []string) (nets []netip.Prefix, err error) {
	for _, text := range list {
		p, ok := netOrAddr(text)
		if !ok {
			return nil, wrong(field, text, "must be a network such as 10.65.0.0/16")
		}
		nets = append(nets, p.Masked())
	}
	return nets, nil
}

// ports reads numbers, ranges and names. They need a protocol that has ports, but for names where they may be of any.
func (x *reader) ports(field string, list []json.RawMessage, anyProtocol bool, ports *[]policy.PortRange, names *[]string) {
	if x.Protocol == 0 && given(x.raw.Protocol) {
		return // of a protocol that is wrong
	}
	for _, text := range list {
		p, name, err := readPort(field, text)
		if err == nil && !hasPorts(x.Protocol) && (!anyProtocol || name == "") {
			err = wrong(field, strings.Trim(string(text), `"`), "must be there only with protocol TCP, UDP or SCTP")
		}
		if err != nil {
			x.wrong(err)
			*ports, *names = nil, nil
			return
		}
		if name != "" {
			*names = append(*names, name)
		} else {
			*ports = append(*ports, p)
		}
	}
}

// readPort reads a number, a range with a colon, or a name.
func readPort(field string, text json.RawMessage) (p policy.PortRange, name string, err error) {
	if len(text) == 0 || text[0] != '"' {
		n, err := strconv.ParseUint(string(text), 10, 16)
		if err != nil {
			return p, "", wrong(field, string(text), "must be 0 to 65535")
		}
		return policy.Port(uint16(n)), "", nil
	}
	if err := json.Unmarshal(text, &name); err != nil {
		return p, "", err
	}
	if strings.Trim(name, "0123456789:") != "" {
		if len(name) > 128 || strings.ContainsAny(name, `"' `) {
			return p, "", wrong(field, name, "must be a port, a range such as 80:90, or the name of a port")
		}
		return p, name, nil
	}
	first, last, two := strings.Cut(name, ":")
	if !two {
		last = first
	}
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a > b {
		return p, "", wrong(field, name, "must be ports up to 65535, the least first, such as 80:90")
	}
	return policy.PortRange{First: uint16(a), Last: uint16(b)}, "", nil
}

// selectors makes one of all that say who has the address. In a namespace they choose there alone, unless another is named; with that of
// namespaces all() is whoever has one, and global() whoever has none.
func (r *rawEntity) selectors(field, namespace string, e *Entity) error {
	is, err := choose(field+".selector", r.Selector)
	if err != nil {
		return err
	}
	accounts, err := r.ServiceAccounts.selector(field + ".serviceAccounts")
	if err != nil {
		return err
	}
	namespaces, err := choose(field+".namespaceSelector", r.NamespaceSelector)
	if err != nil {
		return err
	}
	if e.NotSelector, err = choose(field+".notSelector", r.NotSelector); err != nil {
		return err
	}
	if is != nil || accounts != nil {
		is = selector.And(accounts, is)
	}
	switch {
	case namespaces != nil:
		within := selector.Has(labelNamespace)
		namespaces = namespaces.Prefixed(prefixNamespace).Replace("all()", within).Replace("global()", within.Not())
		is = selector.And(namespaces, is)
	case namespace != "" && (is != nil || e.NotSelector != nil):
		is = selector.And(selector.In(labelNamespace, namespace), is)
	}
	if is != nil && e.NotSelector != nil {
		is, e.NotSelector = selector.And(is, e.NotSelector.Not()), nil
	}
	e.Selector = is
	return nil
}

// selector returns that of service accounts, nil for no such condition.
func (r *rawAccounts) selector(field string) (*selector.Selector, error) {
	if r == nil {
		return nil, nil
	}
	is, err := choose(field+".selector", r.Selector)
	if err != nil {
		return nil, err
	}
	if is != nil {
		is = is.Prefixed(prefixAccount)
	}
	if len(r.Names) == 0 {
		return is, nil
	}
	for _, name := range r.Names {
		if strings.ContainsAny(name, `"'`) {
			return nil, wrong(field+".names", name, "must be the name of a service account")
		}
	}
	return selector.And(is, selector.In(labelAccount, r.Names...)), nil
}
