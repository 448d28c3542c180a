package vtep

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/internal/follow"
	"github.com/vxswitch/vxswitch/internal/index"
	"github.com/vxswitch/vxswitch/internal/perworker"
	"github.com/vxswitch/vxswitch/setting"
)

// An Underlay carries datagrams of one address family. Packages underlay, afpacket and memory implement it.
type Underlay interface {
	Readers() []frame.Reader   // receive queues; they fill Batch.Outer
	Sender(w int) frame.Sender // transmit side of worker w
	LocalAddr() netip.AddrPort // own address and destination port
	MTU() int                  // longest IP packet

	// PathMTU sets the function to call when a packet to an endpoint is too big for the path: with the
	// length of the longest IP packet that passes, and the start of the UDP payload that the error
	// quoted, which may be empty. Senders and goroutines of the underlay call f concurrently; it must
	// not wait or keep quoted. The endpoint's port may be 0.
	PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte))

	// Unreachable sets the function to call when a packet did not reach an endpoint, like that of PathMTU. An
	// underlay without such reports ignores it.
	Unreachable(f func(to frame.Endpoint, quoted []byte))

	// Superframes sets the function that Readers ask whether a payload is one datagram with a superframe in it.
	// An underlay that can tell a long datagram from a run of several ignores it.
	Superframes(f func(payload []byte) bool)

	// Join joins a multicast group of the address family, and each Leave undoes one Join. Both return
	// errors.ErrUnsupported if the underlay has no groups.
	Join(group netip.Addr) error
	Leave(group netip.Addr) error

	Pause()       // Reads return frame.ErrPaused ...
	Resume()      // ... until Resume
	Close() error // Reads and Sends return net.ErrClosed; what a Send did not send is lost
}

// PeerPolicy says from which peers packets are accepted.
type PeerPolicy uint8

// Peer policies.
const (
	AnyPeer      PeerPolicy = iota // from all; unknown outer sources become learned peers
	ListedOnly                     // from listed peers; others are dropped as frame.UnknownPeer
	ListedPerVNI                   // from peers that are listed for the VNI of the packet (VTEP.Allow)
)

// DefaultMaxPeers is the default limit of learned peers.
const DefaultMaxPeers = 1024

// Config configures a VTEP. The zero value is ready to use.
type Config struct {
	Name     string     `json:"name,omitzero"`     // default "vtep"
	Type     encap.Type `json:"type,omitzero"`     // encapsulation
	Port     uint16     `json:"port,omitzero"`     // UDP destination port of peers that have none of their own; default: the port of the underlay
	Peers    PeerPolicy `json:"peers,omitzero"`    // from which peers packets are accepted
	MaxPeers int        `json:"maxPeers,omitzero"` // limit of learned peers, at most 65,000; default 1024
	Header              // outer headers, unless SetPeers has others for a peer, or SetMarking another DSCP for a VNI
	DSCP     DSCP       `json:"dscp,omitzero"`     // what becomes of the outer DSCP of received packets; a segment may have another mode
	GroupTTL int        `json:"groupTTL,omitzero"` // TTL or hop limit towards multicast groups, 1 to 255; default 1, the local network; not for IP-in-IP
	MTU      int        `json:"mtu,omitzero"`      // length of the longest outer IP packet, at most 65535; default: the MTU of each underlay's interface, see [VTEP.FollowMTU]

	// EthernetWithoutP treats VXLAN-GPE packets without the P bit as Ethernet, as the draft says
	// (section 3.1). By default they are dropped as frame.GPEProtocol, as Linux does.
	EthernetWithoutP bool `json:"ethernetWithoutP,omitzero"`

	Reserved Reserved `json:"reserved,omitzero"` // reserved header bits for which packets are dropped: ReservedRFC, none, by default; ReservedStrict, all; or a mask; not for IP-in-IP

	// GBP sends and accepts group policy IDs (frame.GBP), like option gbp of Linux. It is for VXLAN only.
	// By default their bits are reserved. IDs of peers are trusted, so only peers that may set them
	// should be able to reach the VTEP.
	GBP bool `json:"gbp,omitzero"`

	// Own is an encapsulation of the program's own, instead of Type, in UDP. No offload carries its frames past the VTEP; the
	// kernel cuts and joins its packets as it does others.
	Own encap.Encapsulation `json:"-"`

	// SymmetricHash gives both directions of an inner flow one hash, at all VTEPs that set it, so that they take one
	// path of several where routers hash alike. Over packet sockets it is one source port and IPv6 flow label too; UDP sockets
	// have one if their source ports are those of the whole range. The hash of IP packets then covers addresses, protocol and
	// ports alone, and is no secret: senders can choose flows that share a port.
	SymmetricHash bool `json:"symmetricHash,omitzero"`
}

// A VTEP is a VXLAN tunnel end point. It implements Tunnel and Pauser of the switch.
type VTEP struct {
	cfg      Config
	families [2]*family   // IPv4, IPv6; nil without an underlay of that family
	seed     uint64       // of the flow hash
	mtu      atomic.Int32 // longest inner frame that every underlay takes
	header   *header      // towards peers
	groups   *header      // towards multicast groups
	used     uint64       // bits of the tunnel's header
	reserved uint64       // and those that packets are dropped for

	oam      atomic.Pointer[OAM]      // of VXLAN-GPE; nil without
	services atomic.Pointer[Services] // likewise

	networks index.Map[vniKey, *network]
	byHost   index.Map[hostKey, *hop]
	hops     hopTable
	varied   atomic.Int32  // hops with a header or a path MTU of their own
	marked   atomic.Int32  // networks with a marking
	gone     atomic.Uint64 // times that Retire took numbers away
	watchers follow.List[struct{}]

	received perworker.Set[perworker.Table[received]] // by queue, from hops
	sent     perworker.Set[perworker.Table[count]]    // by worker, to hops

	swap   sync.Mutex // serializes SetUnderlay, Pause, Resume and Close
	paused bool       // under swap

	mu        sync.Mutex // tables above, for writers
	closed    bool
	learned   int
	shares    shares
	settings  map[hostKey]peerSetting // by SetPeers
	down      map[hostKey]bool        // by SetDown
	tell      func(frame.Event)       // of the switch; nil without
	evictable []*hop                  // learned peers that have sent little, and nothing between the last two Retires
	evicted   []uint16                // learned peers that were replaced since the last Retire
	peerLimit atomic.Uint64
	peerBusy  atomic.Uint64
	ecn       atomic.Uint64
	handled   atomic.Uint64
	txFrames  atomic.Uint64
	txBytes   atomic.Uint64
	lost      [frame.NumReasons]atomic.Uint64
	closeOnce sync.Once
	closeErr  error
}

// A family is the part of a VTEP for one address family.
type family struct {
	link atomic.Pointer[link]
	port uint16       // destination port of peers
	mtu  atomic.Int32 // length of the longest inner frame
}

const (
	family4 = iota
	family6
)

func familyOf(e frame.Endpoint) int {
	if e.Is4() {
		return family4
	}
	return family6
}

// New returns a VTEP over one underlay, or over two of different address families. A nil cfg means defaults. On
// success the VTEP owns the underlays, and Close closes them; on an error they are still the caller's.
func New(cfg *Config, underlays ...Underlay) (*VTEP, error) {
	v := &VTEP{seed: rand.Uint64()}
	if cfg != nil {
		v.cfg = *cfg
	}
	c := &v.cfg
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.Type = c.typ()
	c.Name = cmp.Or(c.Name, "vtep")
	c.MaxPeers = cmp.Or(c.MaxPeers, DefaultMaxPeers)
	if c.SymmetricHash {
		v.seed = symmetricSeed
	}
	v.used = c.Type.Used(c.GBP)
	v.reserved, _ = c.Reserved.Mask(c.Type, c.GBP)
	v.header = c.Header.compile(c.Type)
	toGroup := c.Header
	toGroup.TTL = Value(max(c.GroupTTL, 1))
	v.groups = toGroup.compile(c.Type)
	if c.Type.Bare() {
		c.Peers = ListedOnly // required by RFC 4213, section 3.6; RFC 2003 leaves it open
	}
	if len(underlays) == 0 {
		return nil, errors.New("vtep: New: at least one underlay is needed")
	}
	for i, u := range underlays {
		if absent.Is(u) {
			return nil, fmt.Errorf("vtep: underlay %d of %d is nil", i+1, len(underlays))
		}
		if err := v.addFamily(u); err != nil {
			return nil, err
		}
	}
	for _, u := range underlays { // last, because the underlays may call these at once
		v.listen(u)
	}
	return v, nil
}

// listen has an underlay call the VTEP.
func (v *VTEP) listen(u Underlay) {
	u.PathMTU(v.narrow)
	u.Unreachable(v.fail)
	u.Superframes(v.superframe)
}

// Check returns what is wrong with the settings for any underlays. New returns the same error.
func (c *Config) Check() error {
	w := setting.Of("vtep: Config")
	w.Number("MaxPeers", c.MaxPeers, 1, 65_000, DefaultMaxPeers)
	t := c.typ()
	switch {
	case c.Own == nil:
	case absent.Is(c.Own):
		w.Wrong("Own", nil, "is %#v", c.Own)
		return w.Err()
	case c.Type != 0 && c.Type != t:
		w.Wrong("Own", nil, "the tunnel has Type %v already", c.Type)
	case c.Own.Header() < 0 || c.Own.Header() > encap.MaxOwn:
		w.Want("Own", c.Own.Header(), "a header of 0 to %d bytes", encap.MaxOwn)
	}
	if c.Own == nil && !t.Valid() {
		w.Want("Type", uint8(c.Type), "TypeVXLAN, TypeGPE, TypeIPIP or TypeFOU")
		return w.Err()
	}
	if c.EthernetWithoutP && t != encap.TypeGPE {
		w.Wrong("EthernetWithoutP", nil, "%v has no P bit", t)
	}
	if c.GBP && t != encap.TypeVXLAN {
		w.Wrong("GBP", nil, "%v has no group policy", t)
	} else if _, err := c.Reserved.Mask(t, c.GBP); err != nil {
		w.Wrong("Reserved", nil, "%v", err)
	}
	checkDSCP(w, c.DSCP)
	w.Number("GroupTTL", c.GroupTTL, 1, 255, 1)
	if c.MTU > 65535 {
		w.Want("MTU", c.MTU, "at most 65535")
	}
	if c.Peers > ListedPerVNI {
		w.Want("Peers", uint8(c.Peers), "AnyPeer, ListedOnly or ListedPerVNI")
	}
	if t == encap.TypeIPIP && c.Port != 0 {
		w.Wrong("Port", c.Port, "IP-in-IP has no ports")
	}
	w.Add("Header", c.Header.check())
	return w.Err()
}

// typ returns the encapsulation.
func (c *Config) typ() encap.Type {
	if c.Own != nil {
		return encap.TypeOwn
	}
	return c.Type
}

// outer returns the length of all headers before the inner packet.
func (c *Config) outer(ipv6 bool) int {
	n := c.typ().Outer(ipv6)
	if c.Own != nil {
		n += c.Own.Header()
	}
	return n
}

// CheckMTU returns what is wrong with Config.MTU, or with the MTU of an underlay, at a local address. New returns
// the same error.
func (c *Config) CheckMTU(mtu int, local netip.Addr) error {
	w := setting.Of("vtep: Config")
	if least := c.outer(!local.Unmap().Is4()) + encap.EthernetLen; mtu < least {
		w.Want("MTU", mtu, "at least %d over %v, to leave room for a frame", least, local)
	}
	return w.Err()
}

func (v *VTEP) addFamily(u Underlay) error {
	addr := u.LocalAddr()
	e, err := frame.EndpointFrom(addr)
	if err != nil {
		return fmt.Errorf("vtep: %w", err)
	}
	i := familyOf(e)
	if v.families[i] != nil {
		return fmt.Errorf("vtep: %v: a second underlay of one address family", addr)
	}
	s := &family{port: v.cfg.Port}
	s.link.Store(newLink(u, e))
	if s.port == 0 {
		s.port = e.Port
	}
	if err := v.carries(addr); err != nil {
		return err
	}
	mtu, err := v.measure(s)
	if err != nil {
		return err
	}
	v.families[i] = s
	v.setMTU(s, mtu)
	return nil
}

// carries checks that the underlay at addr is of the kind that the encapsulation needs.
func (v *VTEP) carries(addr netip.AddrPort) error {
	switch ipip := v.cfg.Type == encap.TypeIPIP; {
	case ipip && addr.Port() != 0:
		return fmt.Errorf("vtep: Config.Type: %v needs an underlay of raw IP, %v is one of UDP", v.cfg.Type, addr)
	case !ipip && addr.Port() == 0:
		return fmt.Errorf("vtep: Config.Type: %v needs an underlay of UDP, %v is one of raw IP", v.cfg.Type, addr.Addr())
	}
	return nil
}

// Name returns the configured name.
func (v *VTEP) Name() string { return v.cfg.Name }

// Type returns the encapsulation.
func (v *VTEP) Type() encap.Type { return v.cfg.Type }

// Readers returns a reader for each receive queue of the underlays.
func (v *VTEP) Readers() []frame.Reader {
	var rs []frame.Reader
	for _, s := range v.families {
		if s == nil {
			continue
		}
		l := s.link.Load()
		for i, r := range l.u.Readers() {
			rs = append(rs, &reader{v: v, in: r, queue: i, counts: v.received.Of(len(rs)), link: l, family: s, bad: frame.Martian})
		}
	}
	return rs
}

// Offloads returns OffloadAll: the VTEP cuts superframes into runs, which the kernel may cut further.
func (v *VTEP) Offloads() frame.Offloads { return frame.OffloadAll }

// Writer returns the transmit side of worker w.
func (v *VTEP) Writer(w int) frame.Writer {
	x := &writer{v: v, worker: w, counts: v.sent.Of(w)}
	for i, s := range v.families {
		if s != nil {
			x.send[i].follow(s.link.Load(), w)
		}
	}
	return x
}

// Pause makes every Read return frame.ErrPaused until Resume.
func (v *VTEP) Pause() { v.pause(true) }

// Resume ends Pause.
func (v *VTEP) Resume() { v.pause(false) }

func (v *VTEP) pause(on bool) {
	v.swap.Lock()
	defer v.swap.Unlock()
	v.paused = on
	for _, s := range v.families {
		if s != nil {
			s.link.Load().pause(on)
		}
	}
}

// Close closes the underlays. From then on Reads return net.ErrClosed, as do methods that add to the tables. It is
// idempotent.
func (v *VTEP) Close() error {
	v.closeOnce.Do(func() {
		v.mu.Lock()
		v.closed = true
		v.mu.Unlock() // goroutines of the underlays may need it to end
		v.swap.Lock()
		defer v.swap.Unlock()
		for _, s := range v.families {
			if s != nil {
				v.closeErr = errors.Join(v.closeErr, s.link.Load().u.Close())
			}
		}
	})
	return v.closeErr
}

// errClosed returns net.ErrClosed after Close. v.mu is held.
func (v *VTEP) errClosed() error {
	if v.closed {
		return fmt.Errorf("vtep: %w", net.ErrClosed)
	}
	return nil
}
