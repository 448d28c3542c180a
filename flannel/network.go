package flannel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/setting"
)

// A Network is the configuration that all nodes of a flannel network share: the JSON under PREFIX/config, which the
// operator writes and the nodes read once, when they start.
//
//	{"Network": "10.230.0.0/16", "SubnetLen": 24, "Backend": {"Type": "vxlan", "VNI": 1}}
type Network struct {
	IPv4, IPv6 Range   // at least one of them; the zero Range for a family that is off
	Backend    Backend // how packets go from node to node
	NFTables   bool    // EnableNFTables: what flanneld sets up of the firewall is for nft, not iptables
}

// maxNetwork is the longest JSON of a Network, in bytes. What people write has some hundred.
const maxNetwork = 64 << 10

// networkJSON has the names that flannel gives the fields. Like all of its JSON, it may have them in any case.
type networkJSON struct {
	EnableIPv4     *bool           `json:",omitempty"` // default true
	EnableIPv6     bool            `json:",omitempty"`
	EnableNFTables bool            `json:",omitempty"`
	Network        texts           `json:",omitempty"`
	IPv6Network    texts           `json:",omitempty"`
	SubnetMin      texts           `json:",omitempty"`
	SubnetMax      texts           `json:",omitempty"`
	IPv6SubnetMin  *texts          `json:",omitempty"`
	IPv6SubnetMax  *texts          `json:",omitempty"`
	SubnetLen      uint            `json:",omitempty"`
	IPv6SubnetLen  uint            `json:",omitempty"`
	Backend        json.RawMessage `json:",omitempty"`
}

// ParseNetwork reads the JSON of a network and fills in the defaults of flannel: subnets of /24 and /64, or a quarter of a
// smaller network; the first subnet left out; backend udp. All errors are in a [setting.Errors], but those of the JSON.
func ParseNetwork(value []byte) (*Network, error) {
	if len(value) > maxNetwork {
		return nil, fmt.Errorf("flannel: network: %d bytes: must be at most %d", len(value), maxNetwork)
	}
	var j networkJSON
	w := setting.Of("flannel: network")
	if err := decode(value, &j); errors.As(err, new(setting.Errors)) {
		w.Add("", err)
		return nil, w.Err()
	} else if err != nil {
		return nil, fmt.Errorf("flannel: network: %w", err)
	}
	n := &Network{NFTables: j.EnableNFTables}
	var low6, high6 texts // null is the default of these two, and an error elsewhere
	if j.IPv6SubnetMin != nil {
		low6 = *j.IPv6SubnetMin
	}
	if j.IPv6SubnetMax != nil {
		high6 = *j.IPv6SubnetMax
	}
	four := j.EnableIPv4 == nil || *j.EnableIPv4
	if !four && !j.EnableIPv6 {
		w.Wrong("EnableIPv6", false, "IPv4 and IPv6 are both off")
	}
	if four {
		n.IPv4 = ipv4.parse(w, j.Network, j.SubnetMin, j.SubnetMax, j.SubnetLen)
	} else {
		ipv4.readable(w, j.Network, j.SubnetMin, j.SubnetMax)
	}
	if j.EnableIPv6 {
		n.IPv6 = ipv6.parse(w, j.IPv6Network, low6, high6, j.IPv6SubnetLen)
	} else {
		ipv6.readable(w, j.IPv6Network, low6, high6)
	}
	b, err := parseBackend(j.Backend)
	w.Add("Backend", err)
	if n.Backend = b; b.Type == "ipip" && j.EnableIPv6 && err == nil {
		w.Wrong("EnableIPv6", true, "the backend ipip is for IPv4")
	}
	if err := w.Err(); err != nil {
		return nil, err
	}
	return n, nil
}

// MarshalJSON writes the network with all defaults filled in, so that flannel reads the same.
func (n *Network) MarshalJSON() ([]byte, error) {
	if !n.IPv4.IsValid() && !n.IPv6.IsValid() {
		return nil, errors.New("flannel: network: IPv4 or IPv6 is required")
	}
	four := n.IPv4.IsValid()
	j := networkJSON{EnableIPv4: &four, EnableIPv6: n.IPv6.IsValid(), EnableNFTables: n.NFTables, Backend: n.Backend.raw()}
	if four {
		j.Network, j.SubnetMin, j.SubnetMax, j.SubnetLen = n.IPv4.json()
	}
	if j.EnableIPv6 {
		var low6, high6 texts
		j.IPv6Network, low6, high6, j.IPv6SubnetLen = n.IPv6.json()
		j.IPv6SubnetMin, j.IPv6SubnetMax = &low6, &high6
	}
	return json.Marshal(j)
}

// subnets returns the range of a family.
func (n *Network) subnets(f family) *Range {
	if f == ipv4 {
		return &n.IPv4
	}
	return &n.IPv6
}

// Suits reports whether a subnet is one that nodes of the network may have: of the right families and lengths, and
// between the first and the last.
func (n *Network) Suits(s Subnet) bool {
	return n.IPv4.Suits(s.IPv4) && n.IPv6.Suits(s.IPv6)
}

// Contains reports whether a subnet is one of the network that somebody else has chosen: of its families, and in it, with any
// length.
func (n *Network) Contains(s Subnet) bool {
	return n.IPv4.contains(s.IPv4) && n.IPv6.contains(s.IPv6)
}

// String returns the networks and the backend.
func (n *Network) String() string {
	var nets []netip.Prefix
	for _, r := range []Range{n.IPv4, n.IPv6} {
		if r.IsValid() {
			nets = append(nets, r.Network)
		}
	}
	return fmt.Sprintf("%v %s", nets, n.Backend.Type)
}
