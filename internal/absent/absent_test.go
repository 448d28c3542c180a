package absent_test

import (
	"io"
	"os"
	"testing"

	"github.com/vxswitch/vxswitch/internal/absent"
)

type call func()

func (c call) Close() error { return nil }

type list []int

func (l list) Close() error { return nil }

type plain struct{}

func (plain) Close() error { return nil }

func TestIs(t *testing.T) {
	for name, x := range map[string]io.Closer{
		"nil": nil, "pointer": (*os.File)(nil), "func": call(nil), "slice": list(nil),
	} {
		if !absent.Is(x) {
			t.Errorf("%s: is there", name)
		}
	}
	for name, x := range map[string]io.Closer{
		"pointer": new(os.File), "func": call(func() {}), "slice": list{}, "value": plain{},
	} {
		if absent.Is(x) {
			t.Errorf("%s: is not there", name)
		}
	}
}
