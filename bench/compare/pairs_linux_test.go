package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The kernel carries what many hosts behind the guests send. Where p2p does, there is no figure.
func TestTalks(t *testing.T) {
	netns.RequireRoot(t)
	must(t, able())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := shared{dir: t.TempDir()}
	must(t, s.build(ctx))
	defer nothing(t)
	some, err := tool.Pick(cases(), "pairs")
	must(t, err)
	flows, err := tool.Pick(contenders(), "flows-many")
	must(t, err)
	join := flows[0].join
	flows[0].join = func(ctx context.Context, l *lab) error {
		defer func() { l.pairs = 100 }() // in a second
		return join(ctx, l)
	}
	v, err := one(ctx, s, some[0], flows[0], 1)
	if err != nil || v[0] <= 0 || v[1] <= 0 || v[2] < 200 || v[3] < 0 {
		t.Errorf("%v, %v", v, err)
	}
	user := contender{join: talking(1, direct("-id", vni, "-kind", "veth"))}
	if v, err := one(ctx, s, some[0], user, 1); err == nil || !strings.Contains(err.Error(), "no flows in the kernel") {
		t.Errorf("%v, %v", v, err)
	}
}
