package bfd

import (
	"net/netip"
	"reflect"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// UDP ports that control packets are sent to (RFC 5881, section 4; RFC 5883, section 5), and the range of those they are
// sent from.
const (
	Port         = 3784
	MultihopPort = 4784

	MinSrcPort = 49152
	MaxSrcPort = 65535
)

// A Path carries the packets of sessions: a VRF of a gateway, a VNI of a tunnel end point, the host's sockets ([UDP]). It
// is also the scope of their addresses: sessions over different Paths may have the same ones. Its values are comparable;
// most are pointers.
type Path interface {
	// Send sends a packet. One goroutine at a time calls it. It must not wait, keep the packet, call Remove, or take a lock
	// that a caller of Remove holds, which waits for it. An error is counted.
	Send(p *Packet) error
}

// A Leaver is a Path that wants to know when a session has sent its last packet. For Leave the same holds as for Send.
type Leaver interface {
	Leave(p Peer)
}

// A Packet is a UDP datagram to be sent with TTL, or hop limit, 255.
type Packet struct {
	Peer    Peer
	SrcPort uint16 // the session's own: 49152 to 65535; a Path for which it is taken may choose another
	DstPort uint16 // Port or MultihopPort
	Payload []byte // borrowed
}

// A Peer identifies a session.
type Peer struct {
	Path          Path
	Local, Remote netip.Addr // unicast, of one family; IPv4 addresses not as IPv6
	Multihop      bool       // the peer is any number of hops away: port 4784, and any TTL is accepted
}

// String returns "192.0.2.1 > 192.0.2.2", with "multihop" if it is.
func (p Peer) String() string {
	s := p.Local.String() + " > " + p.Remote.String()
	if p.Multihop {
		s += " multihop"
	}
	return s
}

func (p Peer) dstPort() uint16 {
	if p.Multihop {
		return MultihopPort
	}
	return Port
}

// Check returns what is wrong with p as [setting.Errors], or nil.
func (p Peer) Check() error {
	w := setting.Of("bfd: Peer")
	switch t := reflect.TypeOf(p.Path); {
	case t == nil:
		w.Wrong("Path", nil, "is missing")
	case !t.Comparable():
		w.Wrong("Path", nil, "%v is not comparable", t)
	}
	for _, a := range []struct {
		name string
		addr netip.Addr
	}{{"Local", p.Local}, {"Remote", p.Remote}} {
		if !a.addr.IsValid() || a.addr.IsUnspecified() || a.addr.IsMulticast() || a.addr.Is4In6() {
			w.Want(a.name, a.addr, "a unicast address")
		}
	}
	if p.Local.Is4() != p.Remote.Is4() {
		w.Wrong("Remote", p.Remote, "is not of the family of Local, %v", p.Local)
	}
	return w.Err()
}

// Settings and their limits.
const (
	DefaultInterval   = 300 * time.Millisecond
	DefaultMultiplier = 3
	DefaultHold       = time.Second

	MinInterval = 10 * time.Millisecond
	MaxInterval = time.Minute
	MaxHold     = time.Hour

	slow = time.Second // least interval of a session that is not Up (RFC 5880, section 6.8.3)
)

// A SessionConfig has the settings of a session.
type SessionConfig struct {
	// Interval is the least time between packets, in both directions; the slower end decides for each. A session that is not
	// Up sends once a second at most. It is 10 ms to 1 min, in whole microseconds; default 300 ms.
	Interval time.Duration `json:"interval,omitzero"`

	// Multiplier is the number of packets in a row that the peer has to miss to find the path dead, 1 to 255; default 3.
	Multiplier int `json:"multiplier,omitzero"`

	// Hold is how long a session that is Up again has to stay so before it is reported as Alive. The first time is reported
	// at once. Default 1 s, which is longer than the default detection time of 900 ms; at most 1 h; negative = not at all.
	Hold time.Duration `json:"hold,omitzero" zero:"never"`

	// Passive makes the session send nothing before the peer does.
	Passive bool `json:"passive,omitzero"`

	// AdminDown holds the session down, and tells the peer that this is no failure.
	AdminDown bool `json:"adminDown,omitzero"`

	// Notify is called with each change of Status, one call at a time for all sessions of a Speaker, in their order, without
	// locks held. It may call the Speaker, but not its Close. While it runs, other changes wait; packets do not.
	Notify func(Change) `json:"-"`
}

// Check returns what is wrong with c as [setting.Errors], or nil.
func (c *SessionConfig) Check() error {
	w := setting.Of("bfd: SessionConfig")
	if d := c.Interval; d != 0 && (d < MinInterval || d > MaxInterval || d%time.Microsecond != 0) {
		w.Want("Interval", d, "%v to %v in whole microseconds, or 0 for %v", MinInterval, MaxInterval, DefaultInterval)
	}
	w.Number("Multiplier", c.Multiplier, 1, 255, DefaultMultiplier)
	if c.Hold > MaxHold {
		w.Want("Hold", c.Hold, "at most %v", MaxHold)
	}
	return w.Err()
}

// filled returns a copy of c, which may be nil, with its defaults.
func filled(c *SessionConfig) (SessionConfig, error) {
	if c == nil {
		c = &SessionConfig{}
	}
	x := *c
	if x.Interval == 0 {
		x.Interval = DefaultInterval
	}
	if x.Multiplier == 0 {
		x.Multiplier = DefaultMultiplier
	}
	if x.Hold == 0 {
		x.Hold = DefaultHold
	}
	return x, c.Check()
}
