package ovsdb

import (
	"context"

	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
)

// say writes what the switch is and has, if the database says otherwise.
func (s *Switch) say(ctx context.Context, c *rpc.Client) {
	st := &table.State{Wrong: s.res.Wrong, Faults: s.faults(), Segments: s.provided, Groups: s.groups, Tunnels: s.probes.of(s.remotes), BFD: s.probes.local()}
	s.mu.Lock()
	if s.client != c || !s.ours {
		s.mu.Unlock()
		return
	}
	s.hosts.read(s.node.Switch())
	st.Hosts = s.hosts.in(s.provided)
	if s.routes() {
		st.Source = s.source().String()
	}
	ops := s.db.Write(&s.sw, st)
	s.status.Hosts = len(st.Hosts)
	s.mu.Unlock()
	s.transact(ctx, c, ops)
}

// transact carries out operations while the lock is ours.
func (s *Switch) transact(ctx context.Context, c *rpc.Client, ops []rpc.Op) error {
	if len(ops) == 0 {
		return nil
	}
	ops = append([]rpc.Op{{"op": "assert", "lock": s.lock()}}, ops...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), transactTime) // what is under way at the end is waited for
	defer cancel()
	_, err := c.Transact(ctx, database, ops...)
	s.set(func(st *Status) {
		if another(err, st.WriteErr) {
			s.log.Warn("a transaction has failed", "error", err)
		}
		st.WriteErr = err
		if st.Transactions++; err != nil {
			st.Failed++
		}
	})
	return err
}

// faults returns what is wrong with ports, by name.
func (s *Switch) faults() map[string][]string {
	up := s.node.PortsUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := map[string][]string{}
	works := map[string]int{}
	for _, x := range s.provided {
		for _, m := range x.Members {
			works[m.Port]++
		}
	}
	for _, p := range s.cfg.Ports {
		if s.res.Bindings[p] > works[p] {
			faults[p] = append(faults[p], table.InvalidVLANMap)
		}
		if s.res.Faulty[p] {
			faults[p] = append(faults[p], table.InvalidACL)
		}
		if !up[p] {
			faults[p] = append(faults[p], table.Unspecified)
		}
	}
	return faults
}

// leave takes our hosts, counters and tunnels out of the database.
func (s *Switch) leave(c *rpc.Client) {
	s.mu.Lock()
	ops := append(s.db.Write(&s.sw, new(table.State)), s.db.WriteStats(&s.sw, nil, nil)...)
	ours := s.client == c && s.ours
	s.mu.Unlock()
	if ours {
		s.transact(context.Background(), c, ops)
	}
}
