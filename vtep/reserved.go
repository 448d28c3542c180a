package vtep

import (
	"fmt"
	"strconv"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/setting"
)

// Reserved is a mask of the tunnel header, with octet 0 as the highest byte. A received packet with one of these
// bits set is dropped as reserved-bits, after its VNI has been looked up and before anything is learned from it.
// The bits are always sent as zero.
//
// As text it is rfc, strict, or a mask such as 0xf700000000000000.
type Reserved uint64

// Presets.
const (
	ReservedRFC    Reserved = 0         // none: reserved bits are ignored (RFC 7348, section 5)
	ReservedStrict Reserved = 1<<64 - 1 // all bits that the encapsulation and its options do not use, as in Linux and OVS
)

// String returns the preset's name, or the mask.
func (r Reserved) String() string {
	switch r {
	case ReservedRFC:
		return "rfc"
	case ReservedStrict:
		return "strict"
	}
	return fmt.Sprintf("%#016x", uint64(r))
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reserved) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what String writes.
func (r *Reserved) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "rfc":
		*r = ReservedRFC
	case "strict":
		*r = ReservedStrict
	default:
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			return &setting.Error{Value: s, Allowed: "rfc, strict, or a mask of 64 bits such as 0xf700000000000000"}
		}
		*r = Reserved(n)
	}
	return nil
}

// Mask returns the bits for which packets of an encapsulation are dropped; gbp says whether group policy is in
// use. It returns an error if r contains bits that the encapsulation uses.
func (r Reserved) Mask(t encap.Type, gbp bool) (uint64, error) {
	used := t.Used(gbp)
	switch {
	case r == ReservedRFC:
		return 0, nil
	case t.Header() == 0:
		return 0, fmt.Errorf("%v: %v has no header", r, t)
	case r == ReservedStrict:
		return ^used, nil
	case uint64(r)&used != 0 && gbp:
		return 0, fmt.Errorf("%v has bits %#016x, which %v with GBP needs", r, uint64(r)&used, t)
	case uint64(r)&used != 0:
		return 0, fmt.Errorf("%v has bits %#016x, which %v needs", r, uint64(r)&used, t)
	}
	return uint64(r), nil
}
