//go:build amd64 || arm64

package node

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/fault"
)

// Whichever system call of Apply fails, what runs is what Config says, and nothing of what was
// to be is left open.
func TestApplyFaults(t *testing.T) {
	l := newLab(t)
	s := l.quiet("one", "192.0.2.1", parse(t, strings.Replace(inPair, `"local"`, `"srcPorts": "2000-2000", "local"`, 1)))
	a := s.Config()
	b := changed(t, a, func(c *Config) {
		c.Tunnels[0].TTL = 7
		c.Ports[1].MTU = 1400
		c.Segments[0].Flood = nil
		c.Segments[1].Gateway.Addresses[0] = parse(t, strings.Replace(inPair, "10.0.20.1/24", "10.0.20.2/24", 1)).Segments[1].Gateway.Addresses[0]
	})
	partsOf := map[bool][]string{true: parts(s.Node)}
	s.must(b)
	partsOf[false] = parts(s.Node)
	isA := func() bool { return reflect.DeepEqual(s.Config(), a) }
	was, failures := false, 0
	fault.Each(t, s.h.Enter, func() error {
		to := a
		if was = isA(); was {
			to = b
		}
		return s.Apply(to)
	}, func(x fault.Fault, err error) {
		if err != nil {
			failures++
			if isA() != was {
				t.Errorf("%v: Config is another one", x)
			}
			if strings.Contains(err.Error(), "restoring") {
				t.Errorf("%v: %v", x, err)
			}
		}
		if got, want := parts(s.Node), partsOf[isA()]; !slices.Equal(got, want) {
			t.Errorf("%v: %v\n%s\nwant\n%s", x, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	if failures < 10 {
		t.Errorf("%d failures", failures)
	}
	t.Logf("%d failures", failures)
}
