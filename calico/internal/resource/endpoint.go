package resource

import (
	"encoding/json"
	"maps"
	"net/netip"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/frame"
)

// An Endpoint is a WorkloadEndpoint or a HostEndpoint.
type Endpoint struct {
	Node      string
	Interface string
	Labels    selector.Labels
	Profiles  []string
	Addrs     []netip.Addr
	Ports     []NamedPort

	MAC    frame.MAC      // of a workload, zero if it is not known
	Spoofs []netip.Prefix // that a workload may send from besides Addrs, if that is allowed (Felix.Spoofing)

	NotCarried []string // fields that say more than is read
}

// A NamedPort is a port of an endpoint that rules can name.
type NamedPort struct {
	Name     string
	Protocol uint8 // TCP, UDP or SCTP
	Port     uint16
}

type rawMetadata struct {
	Labels selector.Labels `json:"labels"`
}

type rawWorkload struct {
	Metadata rawMetadata `json:"metadata"`
	Spec     struct {
		Node               string    `json:"node"`
		ServiceAccountName string    `json:"serviceAccountName"`
		IPNetworks         []string  `json:"ipNetworks"`
		Profiles           []string  `json:"profiles"`
		InterfaceName      string    `json:"interfaceName"`
		MAC                string    `json:"mac"`
		Ports              []rawPort `json:"ports"`
		Spoofs             []string  `json:"allowSpoofedSourcePrefixes"`

		IPNATs      json.RawMessage `json:"ipNATs"`
		QoSControls json.RawMessage `json:"qosControls"`
	} `json:"spec"`
}

type rawPort struct {
	Name     string          `json:"name"`
	Protocol json.RawMessage `json:"protocol"`
	Port     uint16          `json:"port"`
}

// read gives an endpoint the labels of its namespace and service account, which it cannot have by itself.
func (r *rawWorkload) read(namespace, name string) (*Endpoint, error) {
	s := &r.Spec
	rest, ok := strings.CutPrefix(name, strings.ReplaceAll(s.Node, "-", "--")+"-")
	if s.Node == "" || !ok || strings.HasPrefix(rest, "-") { // which is a dash of a longer name
		return nil, wrong("spec.node", s.Node, "must be that of the key")
	}
	e := &Endpoint{Node: s.Node, Interface: s.InterfaceName, Profiles: s.Profiles, Labels: selector.Labels{}}
	for k, v := range r.Metadata.Labels {
		if !strings.HasPrefix(k, prefixNamespace) && !strings.HasPrefix(k, prefixAccount) {
			e.Labels[k] = v
		}
	}
	e.Labels[labelNamespace] = namespace
	if s.ServiceAccountName != "" {
		e.Labels[labelAccount] = s.ServiceAccountName
	}
	for _, text := range s.IPNetworks {
		p, ok := netOrAddr(text)
		if !ok || !p.IsSingleIP() {
			return nil, wrong("spec.ipNetworks", text, "must be an address, or one with /32 or /128")
		}
		e.Addrs = append(e.Addrs, p.Addr())
	}
	var err error
	if e.MAC, err = mac("spec.mac", s.MAC); err != nil {
		return nil, err
	}
	if e.Spoofs, err = readNets("spec.allowSpoofedSourcePrefixes", s.Spoofs); err != nil {
		return nil, err
	}
	if given(s.IPNATs) && string(s.IPNATs) != "[]" {
		e.NotCarried = append(e.NotCarried, "spec.ipNATs")
	}
	if given(s.QoSControls) && string(s.QoSControls) != "{}" {
		e.NotCarried = append(e.NotCarried, "spec.qosControls")
	}
	return e, e.readPorts(s.Ports)
}

// readPorts keeps the ports that rules can name.
func (e *Endpoint) readPorts(list []rawPort) error {
	for _, p := range list {
		protocol, err := readProtocol("spec.ports.protocol", p.Protocol)
		if err != nil {
			return err
		}
		if p.Name != "" && hasPorts(protocol) {
			e.Ports = append(e.Ports, NamedPort{p.Name, protocol, p.Port})
		}
	}
	return nil
}

type rawHost struct {
	Metadata rawMetadata `json:"metadata"`
	Spec     struct {
		Node          string    `json:"node"`
		InterfaceName string    `json:"interfaceName"`
		ExpectedIPs   []string  `json:"expectedIPs"`
		Profiles      []string  `json:"profiles"`
		Ports         []rawPort `json:"ports"`
	} `json:"spec"`
}

func (r *rawHost) read() (*Endpoint, error) {
	s := &r.Spec
	e := &Endpoint{Node: s.Node, Interface: s.InterfaceName, Profiles: s.Profiles, Labels: r.Metadata.Labels}
	for _, text := range s.ExpectedIPs {
		a, err := addr("spec.expectedIPs", text)
		if err != nil {
			return nil, err
		}
		if a.IsValid() {
			e.Addrs = append(e.Addrs, a)
		}
	}
	return e, e.readPorts(s.Ports)
}

// A Set is a GlobalNetworkSet or a NetworkSet: networks with labels.
type Set struct {
	Labels  selector.Labels
	Profile string // that it has labels of, "" for none
	Nets    []netip.Prefix
	Wrong   []string // of its networks
}

type rawSet struct {
	Metadata rawMetadata `json:"metadata"`
	Spec     struct {
		Nets []string `json:"nets"`
	} `json:"spec"`
}

// read leaves out networks that are none, as Calico does.
func (r *rawSet) read(namespace string) (*Set, error) {
	s := &Set{Labels: r.Metadata.Labels}
	if namespace != "" {
		s.Labels = selector.Labels{}
		maps.Copy(s.Labels, r.Metadata.Labels)
		s.Labels[labelNamespace] = namespace
		s.Profile = "kns." + namespace
	}
	for _, text := range r.Spec.Nets {
		if p, ok := netOrAddr(text); ok {
			s.Nets = append(s.Nets, p.Masked())
		} else {
			s.Wrong = append(s.Wrong, wrong("spec.nets", text, "must be a network, and is left out").Error())
		}
	}
	return s, nil
}

// netOrAddr reads an address with or without the length of a prefix.
func netOrAddr(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, false
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	return p, !p.Addr().Is4In6()
}
