package evpn

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/bgp"
	"github.com/vxswitch/vxswitch/evpn/internal/election"
	"github.com/vxswitch/vxswitch/evpn/internal/mobility"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/evpn/internal/table"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/secret"
	"github.com/vxswitch/vxswitch/setting"
)

// DefaultOwner is the default of Config.Owner.
const DefaultOwner = "evpn"

// Defaults of settings.
const (
	DefaultDistance   = 20
	DefaultMaxHosts   = table.DefaultMaxHosts
	DefaultMaxRoutes  = table.DefaultMaxRoutes
	DefaultMaxVTEPs   = table.DefaultMaxVTEPs
	DefaultMaxPaths   = bgp.DefaultAllRoutes
	DefaultMoves      = mobility.DefaultMoves
	DefaultWindow     = mobility.DefaultWindow
	DefaultMobileHold = mobility.DefaultHold
	DefaultPort       = bgp.DefaultPort
	DefaultHold       = bgp.DefaultHold
	DefaultRetry      = bgp.DefaultRetry
	DefaultPeerRoutes = bgp.DefaultMaxRoutes
	DefaultMaxStale   = bgp.DefaultMaxStale
	DefaultWait       = 3 * time.Second // of an EthernetSegment (RFC 7432, section 8.5)

	DefaultPreference          = election.DefaultPreference
	DefaultMaxEthernetSegments = table.DefaultMaxEthernets
)

// Config says who the node is in BGP, and whom it talks to. All segments with a VXLAN tunnel take part, and all VRFs with an L3VNI.
type Config struct {
	AS       uint32           `json:"as"`               // our autonomous system; needed
	RouterID netip.Addr       `json:"routerID"`         // BGP identifier, an IPv4 address that no other speaker has; needed
	Listen   []netip.AddrPort `json:"listen,omitempty"` // addresses for sessions that peers open, such as 10.0.0.1:179; 0.0.0.0:179 is for IPv4 and [::]:179 for IPv6; default none
	Peers    []Peer           `json:"peers,omitempty"`  // route reflectors and other speakers

	VTEP netip.Addr `json:"vtep,omitzero"` // where peers send to, if the tunnel's own address is none in particular, as that of a program's own Node may be; else without effect

	Segments []Segment `json:"segments,omitempty"` // settings of single segments
	VRFs     []VRF     `json:"vrfs,omitempty"`     // settings of single VRFs

	EthernetSegments []EthernetSegment `json:"ethernetSegments,omitempty"` // ports whose hosts have links to other VTEPs too (multihoming)

	Mobility Mobility `json:"mobility,omitzero"` // of hosts
	Distance uint8    `json:"distance,omitzero"` // administrative distance of routes of peers, 1 to 255, the lowest of which counts; default 20

	RFC8365Targets bool `json:"rfc8365Targets,omitzero"` // derives route targets with RFC 8365's mark beside the VNI, as FRR does with autort rfc8365-compatible

	MaxHosts  int `json:"maxHosts,omitzero"`  // MACs that peers may have in a segment; default 131072
	MaxRoutes int `json:"maxRoutes,omitzero"` // prefixes that peers may have in a VRF, with hosts; default 131072
	MaxPaths  int `json:"maxPaths,omitzero"`  // routes that all peers may have, half of it shared equally by them; a lower one takes away none that are there; default 2097152
	MaxVTEPs  int `json:"maxVTEPs,omitzero"`  // VTEPs that peers may have in the flood list of a segment; default 4096

	MaxEthernetSegments int `json:"maxEthernetSegments,omitzero"` // Ethernet segments that peers may have; default 4096

	// Owner is that of the rows, "" for [DefaultOwner].
	Owner string `json:"-"`

	// In runs f where the sockets of BGP are to be opened, such as in a network namespace. Nil opens them where Run is.
	In func(f func()) `json:"-"`

	// Log, if not nil, gets what happens to sessions, and MACs that move too often.
	Log *slog.Logger `json:"-"`
}

// A Peer is a BGP speaker that we have a session with.
type Peer struct {
	Addr      netip.Addr `json:"address,omitzero"`   // of the peer; needed without interface
	Interface string     `json:"interface,omitzero"` // in place of the address: the peer is the router at the other end of this link, and learned from its router advertisements, while we send ours (unnumbered, FRR: neighbor eth0 interface); Linux only

	AS       RemoteAS      `json:"as"`                // its autonomous system, "external" for any but ours, or "internal" for ours; needed
	Port     uint16        `json:"port,omitzero"`     // its TCP port; default 179
	Local    netip.Addr    `json:"local,omitzero"`    // source address; default the system's choice
	Passive  bool          `json:"passive,omitzero"`  // waits for the peer to connect, to an address of its family in listen
	Hold     time.Duration `json:"holdTime,omitzero"` // full seconds from 3s; default "90s"
	Retry    time.Duration `json:"retry,omitzero"`    // first pause between attempts, which doubles up to a minute; default "1s"
	Password string        `json:"-"`                 // of TCP MD5 (RFC 2385), up to 80 bytes; Linux only; "" = none
	Hops     uint8         `json:"hops,omitzero"`     // TTL security: the peer is at most so many hops away (RFC 5082); Linux only; default 0, off

	BFD *BFD `json:"bfd,omitzero"` // probes the path to it; needs local; default none

	OwnAS uint8 `json:"ownAS,omitzero"` // how often our AS may be in the path of its routes, for leaves that share an AS (FRR: allowas-in); default 0

	PasswordFile string `json:"passwordFile,omitzero"` // file with the password of TCP MD5 (RFC 2385), of up to 80 bytes, in its first line; Linux only; default none

	MaxRoutes   int           `json:"maxRoutes,omitzero"`             // routes that it may have; what is beyond is left out and counted, and asked for again when there is room; default 1048576
	LimitResets bool          `json:"limitResets,omitzero"`           // ends the session instead
	MaxStale    time.Duration `json:"maxStale,omitzero" zero:"never"` // the longest that routes of a lost session stay, if the peer restarts gracefully; default "5m", "0s" not at all
}

// Segment has settings of one segment.
type Segment struct {
	VNI         frame.VNI `json:"vni"`                  // of a segment of the node; needed
	RD          string    `json:"rd,omitzero"`          // route distinguisher, such as 192.0.2.1:5 or 65000:5; default the router ID and a number
	Import      []string  `json:"import,omitempty"`     // route targets, such as 65000:100 or 192.0.2.1:100; default any AS with the VNI
	Export      []string  `json:"export,omitempty"`     // route targets, up to 60; default our AS and the VNI
	NoAdvertise bool      `json:"noAdvertise,omitzero"` // says nothing of it to peers; what they say is used
	NoBroadcast bool      `json:"noBroadcast,omitzero"` // asks peers for no broadcast and multicast (RFC 9574, flag BM), directly or by a reflector that passes flags on
	NoUnknown   bool      `json:"noUnknown,omitzero"`   // asks peers for no unknown unicast (flag U)
}

// VRF has settings of one VRF.
type VRF struct {
	Name         string         `json:"name"`                  // of a VRF of the node; needed
	RD           string         `json:"rd,omitzero"`           // route distinguisher; default the router ID and a number
	Import       []string       `json:"import,omitempty"`      // route targets; default any AS with the L3VNI
	Export       []string       `json:"export,omitempty"`      // route targets, up to 60; default our AS and the L3VNI
	NoHostRoutes bool           `json:"noHostRoutes,omitzero"` // packets for hosts of peers go to their segment (asymmetric IRB), without a route for each
	Accept       []netip.Prefix `json:"accept,omitempty"`      // takes routes of peers to prefixes in these; default all
	NoConnected  bool           `json:"noConnected,omitzero"`  // advertises no networks of gateways
	NoStatic     bool           `json:"noStatic,omitzero"`     // advertises no routes of the configuration and of other control planes
}

// Mobility says when a MAC moves too often (RFC 7432, section 15.1). Then it stays where it was last, until Release or
// [Speaker.ClearDuplicate].
type Mobility struct {
	Moves   int           `json:"moves,omitzero"`   // so many moves make a duplicate, 2 to 16; default 5
	Window  time.Duration `json:"window,omitzero"`  // within this time; default "180s"
	Hold    time.Duration `json:"hold,omitzero"`    // a MAC that is gone keeps its sequence number so long; default "300s"
	Release time.Duration `json:"release,omitzero"` // a duplicate may move again after this time; default never
}

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("evpn: Config")
	if c == nil {
		w.Wrong("", nil, "AS and RouterID are required")
		return w.Err()
	}
	b := c.withoutFiles()
	w.Add("", b.Check())
	c.checkListen(w)
	if c.VTEP.IsUnspecified() || c.VTEP.IsMulticast() {
		w.Want("VTEP", c.VTEP, "the address of a host")
	}
	for i := range c.Peers {
		p := &c.Peers[i]
		p.checkBFD(w, fmt.Sprintf("Peers[%d]", i))
		if p.Passive && !slices.ContainsFunc(c.Listen, p.reaches) {
			w.Wrong(fmt.Sprintf("Peers[%d].Passive", i), p.Passive, "the peer cannot connect: an address of its family is required in listen")
		}
		if p.Password != "" && p.PasswordFile != "" {
			w.Wrong(fmt.Sprintf("Peers[%d].PasswordFile", i), p.PasswordFile, "there is a Password already")
		}
	}
	c.checkSegments(w)
	c.checkVRFs(w)
	c.checkEthernets(w)
	w.Number("Mobility.Moves", c.Mobility.Moves, 2, mobility.MaxMoves, DefaultMoves)
	for _, x := range []struct {
		name string
		time time.Duration
	}{{"Window", c.Mobility.Window}, {"Hold", c.Mobility.Hold}, {"Release", c.Mobility.Release}} {
		if x.time < 0 {
			w.Want("Mobility."+x.name, x.time, "0 or longer")
		}
	}
	w.Limit("MaxHosts", c.MaxHosts)
	w.Limit("MaxRoutes", c.MaxRoutes)
	w.Limit("MaxVTEPs", c.MaxVTEPs)
	w.Limit("MaxPaths", c.MaxPaths)
	w.Limit("MaxEthernetSegments", c.MaxEthernetSegments)
	return w.Err()
}

// checkSegments adds what is wrong with the settings of segments.
func (c *Config) checkSegments(w *setting.Check) {
	vnis, rds := map[frame.VNI]int{}, map[route.RD]int{}
	for i, s := range c.Segments {
		at := fmt.Sprintf("Segments[%d].", i)
		if first, ok := twice(vnis, s.VNI, i); ok {
			w.Wrong(at+"VNI", s.VNI, "segments[%d] has it already", first)
		} else if !s.VNI.Valid() {
			w.Want(at+"VNI", s.VNI, "1 to 16777215")
		}
		if first, ok := twice(rds, rd(s.RD), i); ok {
			w.Wrong(at+"RD", s.RD, "segments[%d] has it already", first)
		}
		checkTargets(w, at, s.RD, s.Import, s.Export)
	}
}

// checkVRFs adds what is wrong with the settings of VRFs.
func (c *Config) checkVRFs(w *setting.Check) {
	names, rds := map[string]int{}, map[route.RD]int{}
	for i, v := range c.VRFs {
		at := fmt.Sprintf("VRFs[%d].", i)
		if first, ok := twice(names, v.Name, i); ok {
			w.Wrong(at+"Name", v.Name, "vrfs[%d] has it already", first)
		} else if v.Name == "" {
			w.Want(at+"Name", v.Name, "the name of a VRF")
		}
		if first, ok := twice(rds, rd(v.RD), i); ok { // a segment may have it: its routes are of other types
			w.Wrong(at+"RD", v.RD, "vrfs[%d] has it already", first)
		}
		checkTargets(w, at, v.RD, v.Import, v.Export)
		for k, p := range v.Accept {
			if !p.IsValid() || p != p.Masked() {
				w.Want(fmt.Sprintf("%sAccept[%d]", at, k), p, "a prefix without bits behind its length, such as 10.1.0.0/16")
			}
		}
	}
}

// twice returns which one of a list has what the i-th has, if one before it does. The zero value is nothing to have.
func twice[K comparable](seen map[K]int, x K, i int) (first int, ok bool) {
	if first, ok = seen[x]; !ok && x != *new(K) {
		seen[x] = i
	}
	return first, ok
}

// checkListen adds what is wrong with the addresses for sessions that peers open.
func (c *Config) checkListen(w *setting.Check) {
	seen := map[netip.AddrPort]int{}
	for i, a := range c.Listen {
		at := fmt.Sprintf("Listen[%d]", i)
		if !a.Addr().IsValid() || a.Addr().Is4In6() || a.Port() == 0 {
			w.Want(at, a, "an address and a port such as 10.0.0.1:179, 0.0.0.0:179 or [::]:179")
		} else if first, ok := twice(seen, a, i); ok {
			w.Wrong(at, a, "listen[%d] has it already", first)
		}
	}
}

// reaches reports whether the peer may connect to an address that we listen on. One with an interface has an IPv6 address.
func (p *Peer) reaches(listen netip.AddrPort) bool {
	return listen.Addr().Is4() == (p.Interface == "" && p.Addr.Unmap().Is4())
}

// maxExport is how many route targets a segment or a VRF may export. The route of a host has those of both and a few other extended
// communities, of which a Speaker takes no more than 128.
const maxExport = 60

// checkTargets adds what is wrong with the route distinguisher and the route targets of a segment or a VRF.
func checkTargets(w *setting.Check, at, rd string, imports, exports []string) {
	if _, err := route.ParseRD(rd); rd != "" && err != nil {
		w.Wrong(at+"RD", rd, "%v", err)
	}
	check := func(name string, list []string) {
		for i, x := range list {
			if _, err := route.ParseTarget(x); err != nil {
				w.Wrong(fmt.Sprintf("%s%s[%d]", at, name, i), x, "%v", err)
			}
		}
	}
	check("Import", imports)
	check("Export", exports)
	if len(exports) > maxExport {
		w.Wrong(at+"Export", nil, "%d route targets, at most %d are allowed", len(exports), maxExport)
	}
}

// CheckFiles returns as [setting.Errors] which password files cannot be read, or have no password, as [New] and [Speaker.Configure] do.
func (c *Config) CheckFiles() error {
	_, err := c.bgp()
	return err
}

// bgp returns the settings of BGP, with passwords from files.
func (c *Config) bgp() (bgp.Config, error) {
	w, b := setting.Of("evpn: Config"), c.withoutFiles()
	for i, p := range c.Peers {
		if p.PasswordFile == "" {
			continue
		}
		line, err := secret.Password(p.PasswordFile)
		if err != nil {
			w.Wrong(fmt.Sprintf("Peers[%d].PasswordFile", i), p.PasswordFile, "%v", err)
		}
		b.Peers[i].Password = line
	}
	return b, w.Err()
}

// withoutFiles returns the settings of BGP, without passwords from files.
func (c *Config) withoutFiles() bgp.Config {
	b := bgp.Config{AS: c.AS, RouterID: c.RouterID, Listen: c.Listen, In: c.In, MaxRoutes: max(c.MaxPaths, 0)}
	for _, p := range c.Peers {
		b.Peers = append(b.Peers, bgp.Peer{
			Addr: p.Addr, Interface: p.Interface, AS: int64(p.AS), Port: p.Port, Local: p.Local, Passive: p.Passive, Hold: p.Hold, Retry: p.Retry, Password: p.Password,
			Hops: p.Hops, OwnAS: p.OwnAS, MaxRoutes: p.MaxRoutes, LimitResets: p.LimitResets, MaxStale: p.MaxStale,
		})
	}
	return b
}

// table returns the settings of the table.
func (c *Config) table() table.Config {
	return table.Config{
		AS: c.AS, RFC8365: c.RFC8365Targets, RouterID: c.RouterID, Distance: cmp.Or(c.Distance, DefaultDistance), MaxHosts: c.MaxHosts, MaxRoutes: c.MaxRoutes, MaxVTEPs: c.MaxVTEPs,
		MaxEthernets: c.MaxEthernetSegments,
		Mobility:     mobility.Config{Moves: c.Mobility.Moves, Window: c.Mobility.Window, Hold: c.Mobility.Hold}, Release: c.Mobility.Release,
	}
}

// targets returns the route targets of a Config that was checked, nil for the default.
func targets(list []string) (ts []route.Target) {
	for _, x := range list {
		t, _ := route.ParseTarget(x)
		ts = append(ts, t)
	}
	return ts
}

func rd(s string) route.RD {
	d, _ := route.ParseRD(s)
	return d
}
