package ovsdb

import (
	"context"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
)

// statsPause is how often the counters of bindings are written, if they have changed.
var statsPause = 10 * time.Second

// count writes the counters of bindings.
func (s *Switch) count(ctx context.Context, c *rpc.Client) {
	counts := s.counts()
	s.mu.Lock()
	if s.client != c || !s.ours {
		s.mu.Unlock()
		return
	}
	ops := s.db.WriteStats(&s.sw, counts, s.counted)
	s.mu.Unlock()
	if s.counted = counts; s.transact(ctx, c, ops) != nil {
		s.counted = nil
	}
}

// counts returns what the attachments of bindings have carried.
func (s *Switch) counts() map[table.Member]table.Counts {
	members := map[frame.VNI][]table.Member{}
	for _, x := range s.provided {
		members[x.VNI] = x.Members
	}
	all := map[table.Member]table.Counts{}
	for _, v := range s.node.Switch().VSIs() {
		for _, a := range v.Attachments() {
			m := table.Member{Port: a.PortName(), VLAN: int(a.Tag())}
			if slices.Contains(members[v.VNI()], m) {
				n := a.Stats()
				all[m] = table.Counts{PacketsIn: n.Rx.Frames, BytesIn: n.Rx.Bytes, PacketsOut: n.Tx.Frames, BytesOut: n.Tx.Bytes}
			}
		}
	}
	return all
}
