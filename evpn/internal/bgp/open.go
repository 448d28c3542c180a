package bgp

import (
	"encoding/binary"
	"time"
)

// The one family (RFC 7432, section 7).
const (
	afi  = 25
	safi = 70
)

const asTrans = 23456 // stands for an AS that does not fit two bytes (RFC 6793)

// Capabilities (IANA's "Capability Codes").
const (
	capFamily   = 1  // RFC 4760
	capRefresh  = 2  // RFC 2918
	capExtended = 6  // messages of up to 65535 bytes, RFC 8654
	capRestart  = 64 // RFC 4724
	capAS4      = 65 // RFC 6793
)

// open is an OPEN message (RFC 4271, section 4.2).
type open struct {
	as       uint32
	hold     time.Duration // whole seconds
	id       [4]byte       // BGP identifier
	family   bool          // EVPN is among the families
	refresh  bool
	extended bool
	as4      bool
	restart  time.Duration // the peer wants its routes kept that long when it restarts; 0: not at all
	kept     bool          // it has kept its forwarding state
	ends     bool          // it says when it has said all
}

// marshal returns the message with every capability of ours. Of graceful restart we are the helper only: a list without
// families (RFC 4724, section 3).
func (o *open) marshal() []byte {
	as2 := o.as
	if as2 > 0xffff {
		as2 = asTrans
	}
	b := append(appendHeader(nil, typeOpen), 4, byte(as2>>8), byte(as2))
	b = binary.BigEndian.AppendUint16(b, uint16(o.hold/time.Second))
	b = append(b, o.id[:]...)
	caps := []byte{capFamily, 4, 0, afi, 0, safi, capRefresh, 0, capExtended, 0, capRestart, 2, 0, 0, capAS4, 4}
	caps = binary.BigEndian.AppendUint32(caps, o.as)
	b = append(b, byte(len(caps)+2), 2, byte(len(caps)))
	return setLength(append(b, caps...))
}

// parseOpen reads the body of an OPEN. Whether it is one of the peer is for the session to say.
func parseOpen(b []byte) (*open, *Notification) {
	if b[0] != 4 {
		return nil, notify(errOpen, 1, 0, 4)
	}
	o := &open{as: uint32(binary.BigEndian.Uint16(b[1:])), hold: time.Duration(binary.BigEndian.Uint16(b[3:])) * time.Second}
	copy(o.id[:], b[5:])
	if o.hold > 0 && o.hold < 3*time.Second {
		return nil, notify(errOpen, 6)
	}
	if o.id == [4]byte{} {
		return nil, notify(errOpen, 3)
	}
	n, params, wide := int(b[9]), b[10:], 1
	if n == 255 && len(params) >= 3 && params[0] == 255 { // RFC 9072
		n, params, wide = int(binary.BigEndian.Uint16(params[1:])), params[3:], 2
	}
	if n != len(params) {
		return nil, notify(errOpen, 0)
	}
	for len(params) > 0 {
		if len(params) < 1+wide {
			return nil, notify(errOpen, 0)
		}
		typ, n := params[0], int(params[1])
		if wide == 2 {
			n = int(binary.BigEndian.Uint16(params[1:]))
		}
		params = params[1+wide:]
		if n > len(params) {
			return nil, notify(errOpen, 0)
		}
		if typ != 2 {
			return nil, notify(errOpen, 4)
		}
		if !o.capabilities(params[:n]) {
			return nil, notify(errOpen, 0)
		}
		params = params[n:]
	}
	if o.as == 0 {
		return nil, notify(errOpen, 2)
	}
	return o, nil
}

// capabilities reads a list of them. One of a wrong length is as one that is not there.
func (o *open) capabilities(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 2 || int(b[1]) > len(b)-2 {
			return false
		}
		code, v := b[0], b[2:2+int(b[1])]
		b = b[2+len(v):]
		switch {
		case code == capFamily && len(v) == 4:
			o.family = o.family || isEVPN(v)
		case code == capRefresh:
			o.refresh = true
		case code == capExtended:
			o.extended = true
		case code == capAS4 && len(v) == 4:
			o.as4, o.as = true, binary.BigEndian.Uint32(v)
		case code == capRestart && len(v) >= 2:
			o.ends = true
			for f := v[2:]; len(f) >= 4; f = f[4:] {
				if f[0] == 0 && f[1] == afi && f[2] == safi {
					o.restart = time.Duration(binary.BigEndian.Uint16(v)&0xfff) * time.Second
					o.kept = f[3]&0x80 != 0
				}
			}
		}
	}
	return true
}

// isEVPN reports whether AFI, a byte and SAFI, as capabilities and ROUTE-REFRESH have them, are those of EVPN.
func isEVPN(b []byte) bool { return b[0] == 0 && b[1] == afi && b[3] == safi }
