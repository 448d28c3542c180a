package resource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// A Configuration is a BGPConfiguration: the one called "default" is the cluster's, node.NAME that of a node.
type Configuration struct {
	NoMesh   bool
	AS       uint32 // 0 = 64512
	Port     uint16 // 0 = 179
	Password bool   // the mesh has one
	IPIP     bool   // BIRD makes the routes of blocks of pools with IP-in-IP
	Direct   bool   // and of those without a tunnel

	NotCarried []string // fields that say more than is read
}

type rawConfiguration struct {
	Spec struct {
		NodeToNodeMeshEnabled *bool           `json:"nodeToNodeMeshEnabled"`
		ASNumber              json.RawMessage `json:"asNumber"`
		ListenPort            uint16          `json:"listenPort"`
		NodeMeshPassword      json.RawMessage `json:"nodeMeshPassword"`
		ProgramClusterRoutes  string          `json:"programClusterRoutes"`

		Communities            []json.RawMessage `json:"communities"`
		PrefixAdvertisements   []json.RawMessage `json:"prefixAdvertisements"`
		ServiceLoadBalancerIPs []json.RawMessage `json:"serviceLoadBalancerIPs"`
		ServiceExternalIPs     []json.RawMessage `json:"serviceExternalIPs"`
		ServiceClusterIPs      []json.RawMessage `json:"serviceClusterIPs"`
	} `json:"spec"`
}

func (r *rawConfiguration) read() (*Configuration, error) {
	s := &r.Spec
	c := &Configuration{Port: s.ListenPort, Password: given(s.NodeMeshPassword), NoMesh: s.NodeToNodeMeshEnabled != nil && !*s.NodeToNodeMeshEnabled}
	if err := readAS("spec.asNumber", s.ASNumber, &c.AS); err != nil {
		return nil, err
	}
	switch s.ProgramClusterRoutes {
	case "", "EnabledNoEncapOnly":
		c.Direct = true
	case "Enabled":
		c.Direct, c.IPIP = true, true
	case "EnabledIPIPOnly":
		c.IPIP = true
	case "Disabled":
	default: // of a newer release: the default, as in Calico
		c.Direct = true
		c.NotCarried = append(c.NotCarried, fmt.Sprintf("spec.programClusterRoutes %.100q", s.ProgramClusterRoutes))
	}
	for _, f := range []struct {
		name string
		list []json.RawMessage
	}{{"communities", s.Communities}, {"prefixAdvertisements", s.PrefixAdvertisements}, {"serviceLoadBalancerIPs", s.ServiceLoadBalancerIPs},
		{"serviceExternalIPs", s.ServiceExternalIPs}, {"serviceClusterIPs", s.ServiceClusterIPs}} {
		if len(f.list) > 0 {
			c.NotCarried = append(c.NotCarried, "spec."+f.name)
		}
	}
	return c, nil
}

func given(m json.RawMessage) bool { return len(m) > 0 && string(m) != "null" }

// A Peer is a BGPPeer: some nodes have sessions with others, or with a router.
type Peer struct {
	Node         string             // that it is for; "" = see Nodes
	Nodes        *selector.Selector // likewise; nil, and no Node, for all
	IP           netip.Addr         // of the router; none with Peers
	Port         uint16             // 0 = that of the node with IP, or 179
	AS           uint32             // 0 = that of the cluster
	Peers        *selector.Selector // nodes that are peers
	LocalAS      uint32             // 0 = that of the node
	OwnAS        int                // how often it may be in paths
	NoSource     bool               // sessions have no source address of their own
	Manual       bool               // peers have no session back because of it
	Password     bool
	Workloads    bool // peers are workloads of the node
	TTLSecurity  bool
	Filters      []string
	NotCarried   []string // fields that say more than is read
	HasSelection bool     // it is not for all nodes
}

type rawPeer struct {
	Spec struct {
		Node                     string          `json:"node"`
		NodeSelector             string          `json:"nodeSelector"`
		PeerIP                   string          `json:"peerIP"`
		ASNumber                 json.RawMessage `json:"asNumber"`
		LocalASNumber            json.RawMessage `json:"localASNumber"`
		PeerSelector             string          `json:"peerSelector"`
		KeepOriginalNextHop      bool            `json:"keepOriginalNextHop"`
		NextHopMode              string          `json:"nextHopMode"`
		Password                 json.RawMessage `json:"password"`
		SourceAddress            string          `json:"sourceAddress"`
		KeepaliveTime            json.RawMessage `json:"keepaliveTime"`
		NumAllowedLocalASNumbers int32           `json:"numAllowedLocalASNumbers"`
		TTLSecurity              uint8           `json:"ttlSecurity"`
		ReachableBy              string          `json:"reachableBy"`
		Filters                  []string        `json:"filters"`
		LocalWorkloadSelector    string          `json:"localWorkloadSelector"`
		ReversePeering           string          `json:"reversePeering"`
	} `json:"spec"`
}

func (r *rawPeer) read() (p *Peer, err error) {
	s := &r.Spec
	p = &Peer{
		Node: s.Node, OwnAS: int(s.NumAllowedLocalASNumbers), NoSource: s.SourceAddress == "None",
		Manual: s.ReversePeering == "Manual", Password: given(s.Password), Workloads: s.LocalWorkloadSelector != "", TTLSecurity: s.TTLSecurity > 0,
		Filters: s.Filters, HasSelection: s.Node != "" || s.NodeSelector != "",
	}
	if err := cmp.Or(readAS("spec.asNumber", s.ASNumber, &p.AS), readAS("spec.localASNumber", s.LocalASNumber, &p.LocalAS)); err != nil {
		return nil, err
	}
	if p.Nodes, err = choose("spec.nodeSelector", s.NodeSelector); err != nil {
		return nil, err
	}
	if p.Peers, err = choose("spec.peerSelector", s.PeerSelector); err != nil {
		return nil, err
	}
	if p.Peers == nil && !p.Workloads {
		if err := p.router(s.PeerIP); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(oneOrNone("spec.sourceAddress", s.SourceAddress, "UseNodeIP", "None"), oneOrNone("spec.reversePeering", s.ReversePeering, "Auto", "Manual"),
		oneOrNone("spec.nextHopMode", s.NextHopMode, "Auto", "Self", "Keep")); err != nil {
		return nil, err
	}
	if p.OwnAS < 0 || p.OwnAS > 10 {
		return nil, wrong("spec.numAllowedLocalASNumbers", p.OwnAS, "must be 0 to 10")
	}
	for _, f := range []struct {
		name string
		is   bool
	}{{"keepOriginalNextHop", s.KeepOriginalNextHop}, {"nextHopMode", s.NextHopMode == "Self" || s.NextHopMode == "Keep"},
		{"keepaliveTime", given(s.KeepaliveTime)}, {"reachableBy", s.ReachableBy != ""}} {
		if f.is {
			p.NotCarried = append(p.NotCarried, "spec."+f.name)
		}
	}
	return p, nil
}

// router reads where a peer is that is no node, with or without a port.
func (p *Peer) router(text string) error {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return wrong("spec.peerIP", text, "the port must be 1 to 65535")
		}
		host, p.Port = h, uint16(n)
	}
	a, err := addr("spec.peerIP", host)
	if err != nil {
		return err
	}
	if err := hostaddr.Check(a); err != nil || a.IsLinkLocalUnicast() {
		return wrong("spec.peerIP", text, "must be the address of a host, with or without a port")
	}
	p.IP = a
	return nil
}
