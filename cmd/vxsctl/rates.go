package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/api"
)

// A view is a snapshot of counters.
type view struct {
	at    time.Time
	ports []api.Port
	drops []api.Drop
}

func (s *session) look(ctx context.Context) (v view, err error) {
	if v.ports, err = s.Ports(ctx); err != nil {
		return v, err
	}
	if v.drops, err = s.Drops(ctx); err != nil {
		return v, err
	}
	v.at = time.Now()
	return v, nil
}

// A portRate has the rates of a port per second.
type portRate struct {
	name, kind                                     string
	rx, rxBits, tx, txBits, rxDrops, txDrops, busy uint64
}

// portsSince returns the ports with any traffic since an older view, the busiest first, and the number of others.
func (v view) portsSince(old view) (list []portRate, idle int) {
	rate := v.rate(old)
	for _, p := range v.ports {
		was := p // a new port begins now
		if i := slices.IndexFunc(old.ports, func(o api.Port) bool { return o.Port == p.Port && o.Name == p.Name }); i >= 0 {
			was = old.ports[i]
		}
		r := portRate{
			name: p.Name, kind: p.Type,
			rx: rate(p.Rx.Frames, was.Rx.Frames), rxBits: 8 * rate(p.Rx.Bytes, was.Rx.Bytes),
			tx: rate(p.Tx.Frames, was.Tx.Frames), txBits: 8 * rate(p.Tx.Bytes, was.Tx.Bytes),
			rxDrops: rate(sum(p.RxDrops), sum(was.RxDrops)), txDrops: rate(sum(p.TxDrops), sum(was.TxDrops)),
		}
		r.busy = r.rxBits + r.txBits
		if r.rx+r.tx+r.rxDrops+r.txDrops+r.busy == 0 {
			idle++
			continue
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b portRate) int {
		return cmp.Or(cmp.Compare(b.busy, a.busy), cmp.Compare(b.rx+b.tx, a.rx+a.tx), cmp.Compare(b.rxDrops+b.txDrops, a.rxDrops+a.txDrops))
	})
	return list, idle
}

// A dropRate is the rate of drops for a reason.
type dropRate struct {
	api.Drop
	rate uint64
}

// dropsSince returns the drops since an older view, the most frequent first.
func (v view) dropsSince(old view) (list []dropRate) {
	rate := v.rate(old)
	for _, d := range v.drops {
		n := uint64(0)
		if i := slices.IndexFunc(old.drops, func(o api.Drop) bool {
			return o.Where == d.Where && o.Direction == d.Direction && o.Reason == d.Reason
		}); i >= 0 {
			n = old.drops[i].Frames
		}
		if r := rate(d.Frames, n); r > 0 {
			list = append(list, dropRate{d, r})
		}
	}
	slices.SortStableFunc(list, func(a, b dropRate) int { return cmp.Compare(b.rate, a.rate) })
	return list
}

// rate returns a function for the rate of a counter since an older view.
func (v view) rate(old view) func(now, then uint64) uint64 {
	seconds := v.at.Sub(old.at).Seconds()
	return func(now, then uint64) uint64 {
		if now <= then { // the port was recreated
			return 0
		}
		return max(uint64(float64(now-then)/seconds+0.5), 1)
	}
}

// units formats a number with k, M or G.
func units(n uint64) string {
	x, unit := float64(n), ""
	for _, u := range []string{"k", "M", "G", "T"} {
		if x < 1000 {
			break
		}
		x, unit = x/1000, u
	}
	if unit == "" {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.2f%s", x, unit)
}
