package bgp

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of a Peer.
const (
	DefaultPort      = 179
	DefaultHold      = 90 * time.Second
	DefaultRetry     = time.Second
	DefaultMaxRoutes = 1 << 20
	DefaultAllRoutes = 1 << 21 // of a Config
	DefaultMaxStale  = 5 * time.Minute
)

// Config is who we are and whom we talk to.
type Config struct {
	AS        uint32
	RouterID  netip.Addr       // IPv4; the BGP identifier
	Listen    []netip.AddrPort // none: we only connect
	Peers     []Peer
	MaxRoutes int // that all peers may have; 0 = DefaultAllRoutes. Half of it is shared equally by them; what is beyond is left out, counted as "limit-of-all", and asked for again when there is room

	// In runs f where sockets are to be opened, such as in a network namespace. Nil opens them where Run is.
	In func(f func())
}

// What Peer.AS may be in place of a number.
const (
	External = -1 // any AS but ours
	Internal = -2 // ours
)

// Peer is one neighbour.
type Peer struct {
	Addr      netip.Addr
	Interface string // in place of Addr: the router on it that advertises itself; Linux only

	AS       int64         // or External, or Internal
	Port     uint16        // 0 = 179
	Local    netip.Addr    // source address; none: the system chooses
	Passive  bool          // wait for the peer to connect
	Hold     time.Duration // whole seconds from 3 s; 0 = 90 s
	Retry    time.Duration // first pause between attempts, which doubles up to a minute; 0 = 1 s
	Password string        // of TCP MD5 (RFC 2385), up to 80 bytes; Linux only
	Hops     uint8         // TTL security: the peer is at most that many hops away (RFC 5082); 0 = off; Linux only
	OwnAS    uint8         // how often our AS may be in the path of its routes; 0 = not at all

	MaxRoutes   int           // 0 = 1,048,576; what is beyond is left out, counted as "limit", and asked for again when there is room (RFC 2918)
	LimitResets bool          // instead, end the session (RFC 4486, subcode 1)
	MaxStale    time.Duration // the longest that routes of a lost session stay with graceful restart; 0 = 5 minutes; below 0 = not at all
}

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("bgp: Config")
	if c.AS == 0 {
		w.Want("AS", c.AS, "1 to 4294967295")
	}
	switch {
	case !c.RouterID.IsValid():
		w.Wrong("RouterID", nil, "an IPv4 address is required")
	case !c.RouterID.Is4() || c.RouterID.IsUnspecified():
		w.Want("RouterID", c.RouterID, "an IPv4 address other than 0.0.0.0")
	}
	w.Limit("MaxRoutes", c.MaxRoutes)
	seen := make(map[netip.Addr]int)
	links := make(map[string]int)
	for i := range c.Peers {
		p := &c.Peers[i]
		at := fmt.Sprintf("Peers[%d]", i)
		w.Add(at, p.Check())
		if p.Interface != "" {
			if first, ok := links[p.Interface]; ok {
				w.Wrong(at+".Interface", p.Interface, "peers[%d] has this interface already", first)
			} else {
				links[p.Interface] = i
			}
		} else if first, ok := seen[p.Addr.Unmap()]; ok {
			w.Wrong(at+".Addr", p.Addr, "peers[%d] has this address already", first)
		} else {
			seen[p.Addr.Unmap()] = i
		}
	}
	for i, p := range c.Peers {
		if of, ok := links[p.Addr.Zone()]; ok && p.Interface == "" {
			w.Wrong(fmt.Sprintf("Peers[%d].Addr", i), p.Addr, "peers[%d] is the neighbour on this interface", of)
		}
	}
	return w.Err()
}

// Check returns the errors in the settings as [setting.Errors].
func (p *Peer) Check() error {
	w := setting.Of("bgp: Peer")
	switch a := p.Addr.Unmap(); {
	case p.Interface != "":
		p.checkInterface(w)
	case !a.IsValid():
		w.Wrong("Addr", nil, "the address of the peer is required, or an interface")
	case a.IsUnspecified() || a.IsMulticast():
		w.Want("Addr", p.Addr, "the address of a host")
	}
	if p.Addr.IsLinkLocalUnicast() && p.Addr.Is6() && p.Addr.Zone() == "" {
		w.Want("Addr", p.Addr, "a link-local address with its interface, such as fe80::1%%eth0")
	}
	if (p.AS < 1 || p.AS > math.MaxUint32) && p.AS != External && p.AS != Internal {
		w.Want("AS", p.AS, `1 to 4294967295, "external" or "internal"`)
	}
	if p.Hold != 0 && p.Hold < 3*time.Second || p.Hold > 65535*time.Second || p.Hold%time.Second != 0 {
		w.Want("Hold", p.Hold, "full seconds from 3s to 65535s, or 0 for 90s")
	}
	if len(p.Password) > 80 {
		w.Want("Password", len(p.Password), "at most 80 bytes")
	}
	switch local := p.Local.Unmap(); {
	case !local.IsValid() || p.Interface != "": // of which checkInterface speaks
	case local.IsUnspecified() || local.IsMulticast():
		w.Want("Local", p.Local, "an address of this host")
	case p.Addr.IsValid() && local.Is4() != p.Addr.Unmap().Is4():
		w.Want("Local", p.Local, "an address of the family of %v", p.Addr)
	case local == p.Addr.Unmap():
		w.Wrong("Local", p.Local, "is the address of the peer")
	}
	w.Limit("MaxRoutes", p.MaxRoutes)
	if p.Retry < 0 {
		w.Want("Retry", p.Retry, "0 or longer")
	}
	return w.Err()
}

func (p *Peer) checkInterface(w *setting.Check) {
	if len(p.Interface) > maxInterface || strings.ContainsFunc(p.Interface, func(r rune) bool { return r <= ' ' || r == '/' || r == ':' || r == '%' || r > '~' }) {
		w.Want("Interface", p.Interface, "the name of an interface, such as eth0")
	}
	if p.Addr.IsValid() {
		w.Wrong("Addr", p.Addr, "the peer has an interface already")
	}
	if p.Local.IsValid() {
		w.Wrong("Local", p.Local, "the source address of a peer with an interface is that of the interface")
	}
}

const maxInterface = 15 // bytes of a name

// key is what tells peers apart.
func (p *Peer) key() netip.Addr {
	if p.Interface != "" {
		return netip.IPv6Unspecified().WithZone(p.Interface)
	}
	return p.Addr
}

// allows reports whether the peer may have an AS; own is ours.
func (p *Peer) allows(as, own uint32) bool {
	switch p.AS {
	case External:
		return as != own
	case Internal:
		return as == own
	}
	return int64(as) == p.AS
}

// wants says which AS the peer may have; own is ours.
func (p *Peer) wants(own uint32) string {
	switch p.AS {
	case External:
		return fmt.Sprintf("another than %d", own)
	case Internal:
		return fmt.Sprint(own)
	}
	return fmt.Sprint(p.AS)
}

// withDefaults returns the settings with defaults filled in.
func (p Peer) withDefaults() Peer {
	p.Addr, p.Local = p.Addr.Unmap(), p.Local.Unmap()
	p.Hold = cmp.Or(p.Hold, DefaultHold)
	p.Retry = cmp.Or(p.Retry, DefaultRetry)
	p.MaxStale = cmp.Or(p.MaxStale, DefaultMaxStale)
	p.Port = cmp.Or(p.Port, DefaultPort)
	p.MaxRoutes = cmp.Or(p.MaxRoutes, DefaultMaxRoutes)
	return p
}
