package policy

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/follow"
	"github.com/vxswitch/vxswitch/setting"
)

// GuardConfig says what the hosts behind a port may be ([Guard]). An empty one allows every MAC and
// address, but no DHCP server, router or tunnel.
type GuardConfig struct {
	MACs []frame.MAC `json:"macs,omitempty"` // source MACs, of ARP and ND too; empty = any

	// Addrs are the source addresses, of ARP and ND too; empty = any. The IPv6 link-local address
	// made of the source MAC (RFC 4291, appendix A) is always allowed.
	Addrs     []netip.Prefix `json:"addrs,omitempty"`
	LinkLocal bool           `json:"linkLocal,omitempty"` // allows any other IPv6 link-local address

	DHCPServer           bool `json:"dhcpServer,omitempty"`           // allows messages of DHCP and DHCPv6 servers
	RouterAdvertisements bool `json:"routerAdvertisements,omitempty"` // allows these, and ICMPv6 redirects
	Tunnels              bool `json:"tunnels,omitempty"`              // allows VXLAN, GPE, Geneve, GRE and IP in IP
	IPIP                 bool `json:"ipip,omitempty"`                 // allows IP in IP, also without Tunnels
	VXLAN                bool `json:"vxlan,omitempty"`                // allows VXLAN, also without Tunnels

	// VXLANPorts are UDP ports that count as VXLAN, besides 4789 and 8472.
	VXLANPorts []uint16 `json:"vxlanPorts,omitempty"`
}

// A Guard is a stage that drops frames of a port with the addresses of others. Put it before the
// policy in the port's slot Ingress. Make one with NewGuard.
type Guard struct {
	identity atomic.Pointer[identity]
	watchers follow.List[struct{}]
	drops    [numCauses]atomic.Uint64
}

// identity is a compiled GuardConfig.
type identity struct {
	macs  []uint64 // in order; empty = any
	addrs *bart.Lite
	GuardConfig
}

// A cause is why a Guard drops.
type cause uint8

const (
	noCause cause = iota
	badHeader
	badMAC
	badAddress
	badARP
	badND
	isDHCPServer
	isRouter
	isTunnel
	numCauses
)

// NewGuard returns a guard. A nil cfg is the zero GuardConfig. The error names everything that is
// wrong.
func NewGuard(cfg *GuardConfig) (*Guard, error) {
	g := new(Guard)
	if err := g.Update(cfg); err != nil {
		return nil, err
	}
	return g, nil
}

// Update replaces the GuardConfig. It takes effect with the next packet.
func (g *Guard) Update(cfg *GuardConfig) error {
	if cfg == nil {
		cfg = &GuardConfig{}
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	own := &identity{GuardConfig: *cfg}
	own.VXLANPorts = append([]uint16{encap.VXLANPort, encap.LinuxVXLANPort}, cfg.VXLANPorts...)
	for _, m := range cfg.MACs {
		own.macs = append(own.macs, m.Uint64())
	}
	slices.Sort(own.macs)
	for _, x := range cfg.Addrs {
		if own.addrs == nil {
			own.addrs = new(bart.Lite)
		}
		own.addrs.Insert(x)
	}
	g.identity.Store(own)
	g.watchers.Tell(struct{}{})
	return nil
}

// Check returns what is wrong with the settings, as [NewGuard] and [Guard.Update] do.
func (cfg *GuardConfig) Check() error {
	w := setting.Of("policy: GuardConfig")
	for i, m := range cfg.MACs {
		if !m.IsHost() {
			w.Want(fmt.Sprintf("MACs[%d]", i), m, "the MAC of one host")
		}
	}
	checkPrefixes(w, "Addrs", cfg.Addrs)
	for i, p := range cfg.VXLANPorts {
		if p == 0 {
			w.Want(fmt.Sprintf("VXLANPorts[%d]", i), p, "1 to 65535")
		}
	}
	return w.Err()
}

// GuardStats counts the frames that a guard dropped, by cause.
type GuardStats struct {
	Malformed           uint64 `json:"malformed"` // malformed headers
	MAC                 uint64 `json:"mac"`       // source MAC not in MACs
	Address             uint64 `json:"address"`   // source address not in Addrs
	ARP                 uint64 `json:"arp"`       // sender's MAC or address not allowed, or not for IPv4 over Ethernet
	ND                  uint64 `json:"nd"`        // the same for neighbour discovery; also invalid, or behind extension headers
	DHCPServer          uint64 `json:"dhcp_server"`
	RouterAdvertisement uint64 `json:"router_advertisement"`
	Tunnel              uint64 `json:"tunnel"`
}

// Stats returns a snapshot.
func (g *Guard) Stats() GuardStats {
	n := func(c cause) uint64 { return g.drops[c].Load() }
	return GuardStats{
		Malformed: n(badHeader), MAC: n(badMAC), Address: n(badAddress), ARP: n(badARP), ND: n(badND),
		DHCPServer: n(isDHCPServer), RouterAdvertisement: n(isRouter), Tunnel: n(isTunnel),
	}
}

// All returns the counts by cause, in words.
func (s GuardStats) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		_ = yield("malformed", s.Malformed) && yield("mac", s.MAC) && yield("address", s.Address) && yield("arp", s.ARP) && yield("nd", s.ND) &&
			yield("dhcp-server", s.DHCPServer) && yield("router-advertisement", s.RouterAdvertisement) && yield("tunnel", s.Tunnel)
	}
}

// Process returns frame.Continue, or frame.Drop(frame.Policy).
func (g *Guard) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	if c := g.identity.Load().judge(f); c != noCause {
		g.drops[c].Add(1)
		return frame.Drop(frame.Policy)
	}
	return frame.Continue
}
