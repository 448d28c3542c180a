package flannel

import (
	"iter"
	"maps"
	"slices"

	"github.com/vxswitch/vxswitch/control"
)

// A Remote is a lease of another node, and why it is not followed.
type Remote struct {
	Key      string
	Lease    Lease      // zero if it cannot be read
	Refused  []*Refusal // of one or both families; none if it is followed
	Followed bool       // in one or both families
	Rows     []control.Row
	Direct   bool // packets to it, of one or both families, go without a tunnel
}

// Len returns the number of leases of other nodes.
func (m *Mapper) Len() int { return len(m.leases) }

// Remotes iterates over the leases of other nodes, sorted by key.
func (m *Mapper) Remotes() iter.Seq[Remote] {
	return func(yield func(Remote) bool) {
		for _, key := range slices.Sorted(maps.Keys(m.leases)) {
			l := m.leases[key]
			r := Remote{Key: key, Lease: l.lease, Refused: slices.Clone(l.refused), Rows: m.rows.Rows(rowKey{lease: key})}
			for _, f := range families {
				if m.follows(l, f) {
					r.Followed, r.Direct = true, r.Direct || m.direct(l, f)
				}
			}
			if !yield(r) {
				return
			}
		}
	}
}

// Refused returns how many leases are not followed, by reason.
func (m *Mapper) Refused() map[Reason]int {
	counts := map[Reason]int{}
	for r, n := range m.refused {
		if n > 0 {
			counts[Reason(r)] = n
		}
	}
	return counts
}

// maxNews is how many refusals News returns.
const maxNews = 100

func (m *Mapper) tell(l *mapped) {
	if len(m.news) < maxNews {
		m.news = append(m.news, l.refused...)
	}
}

// News returns what has been refused since the last call, the first hundred.
func (m *Mapper) News() []*Refusal {
	list := m.news
	m.news = nil
	return list
}
