package control

import (
	"maps"
	"slices"
	"time"
)

// maxRefusals is how many refused rows of an owner are kept.
const maxRefusals = 16

// A Refusal is a row that Program refused.
type Refusal struct {
	Time time.Time
	RowError
}

// keep keeps the last refused rows of an owner.
func (p *Plane) keep(owner string, rows RowErrors) {
	p.stats.Refused += uint64(len(rows))
	list, now := p.refusals[owner], time.Now()
	for _, e := range rows[max(0, len(rows)-maxRefusals):] {
		list = append(list, Refusal{now, e})
	}
	if len(list) > maxRefusals {
		list = slices.Clone(list[len(list)-maxRefusals:])
	}
	p.refusals[owner] = list
}

// Refusals returns the last 16 rows of an owner that were refused, the oldest first. They may have been accepted since.
// [Plane.Forget] removes them.
func (p *Plane) Refusals(owner string) []Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refusals[owner])
}

// Refused returns the owners of which Refusals knows rows, sorted.
func (p *Plane) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.refusals))
}
