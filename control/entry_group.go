package control

import (
	"fmt"
	"slices"
)

// setGroup gives the VTEPs of a group numbers, and changes what the rows that name the group have: a number that stays.
func (t *tx) setGroup(k groupKey, _ *struct{}) {
	for n := range t.p.groups.all(&t.p.store, k) {
		t.usable(n, t.need)
	}
	for _, p := range t.p.named[k] {
		p.found = 0
		if t.find(p) != nil || !p.ready {
			continue
		}
		nums, _ := t.members(k)
		if err := t.regroup(p.held[0].peer, nums); err != nil {
			t.lose(p, err)
		}
	}
}

// members returns the numbers of the VTEPs of a group.
func (t *tx) members(k groupKey) (nums []uint16, err error) {
	err = ErrNoGroup
	for _, r := range t.p.groups.all(&t.p.store, k) {
		if e := t.need(r.place); e == nil {
			nums = append(nums, r.place.dest.Peer())
		} else {
			err = e
		}
	}
	if slices.Sort(nums); len(nums) > 0 {
		return slices.Compact(nums), nil
	}
	return nil, fmt.Errorf("group %q: %w", k.name, err)
}
