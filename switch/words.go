package vswitch

import (
	"encoding/json"
	"strings"

	"github.com/vxswitch/vxswitch/setting"
)

var (
	vlanWords  = []string{VLANDiscard: "discard", VLANStrip: "strip", VLANPass: "pass"}
	classWords = []string{"broadcast", "multicast", "unknown"} // by bit
)

// String returns the mode as settings call it.
func (m VLANMode) String() string { return setting.Name(vlanWords, m) }

// MarshalText implements [encoding.TextMarshaler].
func (m VLANMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what String writes.
func (m *VLANMode) UnmarshalText(text []byte) error { return setting.Parse(m, vlanWords, text) }

// String returns the classes as "broadcast, unknown".
func (c Class) String() string { return strings.Join(c.words(), ", ") }

func (c Class) words() []string {
	list := []string{}
	for i, w := range classWords {
		if c>>i&1 != 0 {
			list = append(list, w)
		}
	}
	return list
}

// MarshalJSON writes a list of words: ["broadcast","unknown"].
func (c Class) MarshalJSON() ([]byte, error) { return json.Marshal(c.words()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Class) UnmarshalJSON(text []byte) error {
	var words []string
	if json.Unmarshal(text, &words) != nil {
		return &setting.Error{Value: setting.Literal(text), Allowed: `a list of words such as ["broadcast"]`}
	}
	*c = 0
	for _, w := range words {
		var bit uint8
		if err := setting.Parse(&bit, classWords, []byte(w)); err != nil {
			return err
		}
		*c |= 1 << bit
	}
	return nil
}
