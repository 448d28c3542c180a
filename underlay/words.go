package underlay

import (
	"fmt"

	"github.com/vxswitch/vxswitch/setting"
)

var checksumWords = []string{ChecksumAuto: "auto", ChecksumOn: "on", ChecksumOff: "off"}

// String returns the mode as settings call it.
func (c Checksum) String() string { return setting.Name(checksumWords, c) }

// MarshalText implements [encoding.TextMarshaler].
func (c Checksum) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what String writes.
func (c *Checksum) UnmarshalText(text []byte) error { return setting.Parse(c, checksumWords, text) }

// String returns the range as "49152-65535".
func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.Lo, r.Hi) }

// MarshalText implements [encoding.TextMarshaler].
func (r PortRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what String writes.
func (r *PortRange) UnmarshalText(text []byte) error {
	var x PortRange
	if _, err := fmt.Sscanf(string(text), "%d-%d", &x.Lo, &x.Hi); err != nil || x.String() != string(text) {
		return &setting.Error{Value: string(text), Allowed: `a range of ports such as "49152-65535"`}
	}
	*r = x
	return nil
}
