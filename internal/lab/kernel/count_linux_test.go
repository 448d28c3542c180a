package kernel

import (
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// counters are what a pair of VTEPs has counted as dropped.
type counters struct {
	p            *pair
	kernel, ours map[string]uint64
}

// count reads the counters.
func (p *pair) count() counters {
	p.t.Helper()
	return counters{p: p, kernel: p.kernelDrops(), ours: p.ourDrops()}
}

// kernelDrops returns the counters of the kernel's device, and of its UDP.
func (p *pair) kernelDrops() map[string]uint64 {
	p.t.Helper()
	got := map[string]uint64{}
	for _, name := range []string{"rx_errors", "rx_dropped", "rx_frame_errors", "rx_length_errors", "tx_errors", "tx_dropped", "tx_carrier_errors"} {
		got[name] = uint64(p.kernel.near.Counter(p.kernel.dev, name))
	}
	addChecksums(got, p.kernel)
	return got
}

// ourDrops returns the reasons that our switch knows, and the counters of the sockets
// it reads: those of the kernel's UDP.
func (p *pair) ourDrops() map[string]uint64 {
	p.t.Helper()
	got := map[string]uint64{}
	for _, port := range p.Switch().Stats().Ports {
		for r, n := range port.RxDrops.All() {
			got[r.String()] += n
		}
		for r, n := range port.TxDrops.All() {
			got["tx "+r.String()] += n
		}
	}
	addChecksums(got, p.ours)
	return got
}

func addChecksums(to map[string]uint64, s *side) {
	for name, n := range s.near.Nstat() {
		if strings.HasPrefix(name, "Udp") && strings.HasSuffix(name, "InCsumErrors") {
			to[name] = uint64(n)
		}
	}
}

// want fails unless exactly these counters have risen since count. Names are sorted,
// with blanks between them.
func (c counters) want(t *testing.T, what, kernel, ours string) {
	t.Helper()
	now := c.p.count()
	got := risen(c.kernel, now.kernel)
	check.True(t, got == kernel, "%s: the kernel counts %q, want %q", what, got, kernel)
	got = risen(c.ours, now.ours)
	check.True(t, got == ours, "%s: ours counts %q, want %q", what, got, ours)
}

func risen(before, after map[string]uint64) string {
	var names []string
	for name, n := range after {
		if n > before[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
