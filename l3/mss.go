package l3

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// An MSSClamp is a stage for the slot Ingress. It lowers the maximum segment size that hosts
// announce when they open a TCP connection (RFC 9293, section 3.7.1) to fit the MTU, for paths
// that lose ICMP errors.
type MSSClamp struct {
	mtu     int
	clamped atomic.Uint64
}

// The headers that an MSS does not count (RFC 6691).
const (
	mss4 = wire.IPv4Len + wire.TCPLen
	mss6 = wire.IPv6Len + wire.TCPLen
)

// NewMSSClamp returns a stage for an MTU of IP, 68 to 65535.
func NewMSSClamp(mtu int) (*MSSClamp, error) {
	if mtu < icmperr.MinMTU4 || mtu > 65535 {
		return nil, fmt.Errorf("l3: MSSClamp: MTU %d: must be %d to 65535", mtu, icmperr.MinMTU4)
	}
	return &MSSClamp{mtu: mtu}, nil
}

// Clamped returns how many SYNs were changed.
func (c *MSSClamp) Clamped() uint64 { return c.clamped.Load() }

// Rewrites tells the switch that Process writes to frames.
func (c *MSSClamp) Rewrites() {}

// Process returns frame.Continue.
func (c *MSSClamp) Process(f *frame.Frame, at frame.At) frame.Verdict {
	b, kind, ip := f.Bytes(), f.Kind, 0
	if kind == frame.Ethernet {
		e, ok := wire.ParseEthernet(b)
		if !ok {
			return frame.Continue
		}
		var t uint16
		switch t, ip = e.Network(); t {
		case wire.TypeIPv4:
			kind = frame.IPv4
		case wire.TypeIPv6:
			kind = frame.IPv6
		default:
			return frame.Continue
		}
	}
	if kind == frame.IPv4 {
		if p, ok := wire.ParseIPv4(b[ip:]); ok && p.Protocol() == wire.ProtoTCP && p.FragmentOffset() == 0 {
			c.clamp(f, p.Payload(), c.mtu-mss4)
		}
	} else if p, ok := wire.ParseIPv6(b[ip:]); ok {
		if u, ok := p.Upper(); ok && u.Protocol == wire.ProtoTCP && !u.Later {
			c.clamp(f, p[u.At:], max(c.mtu, icmperr.MinMTU6)-mss6)
		}
	}
	return frame.Continue
}

// clamp lowers the MSS option of a SYN.
func (c *MSSClamp) clamp(f *frame.Frame, b []byte, mss int) {
	if len(b) < wire.TCPLen {
		return
	}
	h := wire.TCP(b)
	if h.Flags()&wire.SYN == 0 || h.HeaderLen() < wire.TCPLen || h.HeaderLen() > len(b) {
		return
	}
	for at := wire.TCPLen; ; {
		o := b[at:h.HeaderLen()]
		n := optionLen(o)
		if n <= 0 {
			return
		}
		if o[0] == 2 && n == 4 {
			if old := binary.BigEndian.Uint16(o[2:]); int(old) > mss {
				c.set(f, h, at+2, old, uint16(mss))
			}
			return
		}
		at += n
	}
}

// set writes a 16-bit word, which may straddle two of the checksum's words. An unfinished
// checksum, left to a network card, does not cover options yet.
func (c *MSSClamp) set(f *frame.Frame, h wire.TCP, at int, old, is uint16) {
	binary.BigEndian.PutUint16(h[at:], is)
	c.clamped.Add(1)
	if f.GSO.Flags&frame.NeedsCsum != 0 {
		return
	}
	if at%2 != 0 {
		old, is = old<<8|old>>8, is<<8|is>>8
	}
	h.SetChecksum(wire.Update(h.Checksum(), old, is))
}
