package vtep

import (
	"strings"
	"testing"
)

// An underlay that is none is an error, whatever the interface around it holds.
func TestNilUnderlay(t *testing.T) {
	for name, us := range map[string][]Underlay{
		"nil": {nil}, "nil pointer": {(*fake)(nil)}, "the second": {fake4(), (*groupFake)(nil)},
	} {
		v, err := New(nil, us...)
		if v != nil || err == nil || !strings.HasPrefix(err.Error(), "vtep: underlay ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
