package arp

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestFollow: each change of what Resolve returned is told with the MAC that it was, and nothing else is.
func TestFollow(t *testing.T) {
	table := check.Must(NewTable(&TableConfig{DuplicateMoves: 3, Freeze: true}))(t)
	var told []frame.MAC
	stop := table.Follow(func(was frame.MAC) { told = append(told, was) })
	learn := func(n byte, from frame.Dest, now frame.Tick) {
		table.Learn(&Claim{IP: ip4(1), MAC: mac(n), From: from}, now)
	}
	near, far := frame.NewDest(1, 0), frame.NewDest(2, 3)
	for _, x := range []struct {
		name string
		do   func()
		want []frame.MAC
	}{
		{"new", func() { learn(1, near, 1) }, nil},
		{"again", func() { learn(1, near, 2) }, nil},
		{"at another port", func() { learn(1, frame.NewDest(2, 0), 2) }, nil},
		{"behind a tunnel", func() { learn(1, far, 2) }, []frame.MAC{mac(1)}},
		{"another MAC", func() { learn(2, near, 3) }, []frame.MAC{mac(1)}},
		{"a duplicate, frozen", func() { learn(1, near, 3); learn(2, near, 3) }, []frame.MAC{mac(2), mac(1)}},
		{"deleted", func() { table.Delete(ip4(1)) }, nil},
		{"set", func() { check.OK(t, table.Set(ip4(1), mac(3), Static, 0)) }, nil},
		{"set again", func() { check.OK(t, table.Set(ip4(1), mac(4), Static, 0)) }, []frame.MAC{mac(3)}},
		{"deleted", func() { table.Delete(ip4(1)) }, []frame.MAC{mac(4)}},
		{"new", func() { learn(1, near, 5) }, nil},
		{"another address", func() { check.OK(t, table.Set(ip4(2), mac(9), Static, 0)) }, nil},
		{"aged", func() { table.Sweep(1000, nil) }, []frame.MAC{mac(1)}},
		{"new", func() { learn(1, near, 5) }, nil},
		{"flushed", func() { table.FlushDest(near) }, []frame.MAC{mac(1)}},
		{"not followed", func() { stop(); table.Delete(ip4(2)) }, nil},
		{"unknown", func() { check.Equal(t, "Resolve", table.Resolve(ip4(2)), 0) }, nil},
	} {
		told = nil
		x.do()
		check.Slice(t, x.name, told, x.want)
	}
}
