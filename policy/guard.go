package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// GuardConfig is what hosts behind a port may say they are ([Guard]).
// What is left empty lets every MAC and address speak, but no server, router or tunnel.
type GuardConfig struct {
	MACs []frame.MAC `json:"macs,omitempty"` // source MACs, of ARP and ND too; empty = any

	// Addrs are the source addresses, of ARP and ND too; empty = any. The IPv6 link-local
	// address that is made of the source MAC (RFC 4291, appendix A) need not be listed.
	Addrs     []netip.Prefix `json:"addrs,omitempty"`
	LinkLocal bool           `json:"linkLocal,omitempty"` // any other IPv6 link-local address is taken too

	DHCPServer           bool `json:"dhcpServer,omitempty"`           // it may send what DHCP and DHCPv6 servers do
	RouterAdvertisements bool `json:"routerAdvertisements,omitempty"` // it may send these, and ICMPv6 redirects
	Tunnels              bool `json:"tunnels,omitempty"`              // it may send VXLAN, GPE, Geneve, GRE and IP in IP
}

// A Guard is the stage that keeps a port from speaking in the name of others; it comes
// before the policy in the port's slot Ingress. Make one with NewGuard.
type Guard struct {
	identity atomic.Pointer[identity]
	drops    [numCauses]atomic.Uint64
}

// identity is a GuardConfig as packets meet it.
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

// NewGuard returns a guard; nil is the zero GuardConfig. Its error is everything that is
// wrong, joined.
func NewGuard(cfg *GuardConfig) (*Guard, error) {
	g := new(Guard)
	if err := g.Update(cfg); err != nil {
		return nil, err
	}
	return g, nil
}

// Update puts another GuardConfig in the place of the one there is, with the next packet.
func (g *Guard) Update(cfg *GuardConfig) error {
	if cfg == nil {
		cfg = &GuardConfig{}
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	own := &identity{GuardConfig: *cfg}
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
	return nil
}

// Check returns what [NewGuard] and [Guard.Update] refuse.
func (cfg *GuardConfig) Check() error {
	w := setting.Of("policy: GuardConfig")
	for i, m := range cfg.MACs {
		if !m.IsHost() {
			w.Want(fmt.Sprintf("MACs[%d]", i), m, "the MAC of one host")
		}
	}
	checkPrefixes(w, "Addrs", cfg.Addrs)
	return w.Err()
}

// GuardStats counts what a guard has dropped, by cause.
type GuardStats struct {
	Malformed           uint64 `json:"malformed"` // headers that cannot be read
	MAC                 uint64 `json:"mac"`       // source MAC of another
	Address             uint64 `json:"address"`   // source address of another
	ARP                 uint64 `json:"arp"`       // speaks of another's MAC or address, or is not for IPv4 over Ethernet
	ND                  uint64 `json:"nd"`        // likewise neighbour discovery; or hidden behind extension headers, or invalid
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

// Process returns frame.Continue, or frame.Drop(frame.Policy).
func (g *Guard) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	if c := g.identity.Load().judge(f); c != noCause {
		g.drops[c].Add(1)
		return frame.Drop(frame.Policy)
	}
	return frame.Continue
}
