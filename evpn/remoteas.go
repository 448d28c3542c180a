package evpn

import (
	"math"
	"strconv"

	"github.com/vxswitch/vxswitch/evpn/internal/bgp"
	"github.com/vxswitch/vxswitch/setting"
)

// RemoteAS is the autonomous system of a peer: a number, [External] or [Internal].
type RemoteAS int64

// Values of RemoteAS that are no number.
const (
	External RemoteAS = bgp.External // any but ours
	Internal RemoteAS = bgp.Internal // ours
)

// MarshalJSON writes a number, or a word.
func (a RemoteAS) MarshalJSON() ([]byte, error) {
	switch a {
	case External:
		return []byte(`"external"`), nil
	case Internal:
		return []byte(`"internal"`), nil
	}
	return strconv.AppendInt(nil, int64(a), 10), nil
}

// String returns what MarshalJSON writes.
func (a RemoteAS) String() string {
	text, _ := a.MarshalJSON()
	return string(text)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *RemoteAS) UnmarshalJSON(text []byte) error {
	switch n, err := strconv.ParseUint(string(text), 10, 63); {
	case string(text) == `"external"`:
		*a = External
	case string(text) == `"internal"`:
		*a = Internal
	case err != nil || n > math.MaxUint32:
		return &setting.Error{Value: setting.Literal(text), Allowed: `1 to 4294967295, "external" or "internal"`}
	default:
		*a = RemoteAS(n)
	}
	return nil
}
