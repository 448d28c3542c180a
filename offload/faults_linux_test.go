package offload

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fault"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestFaults: New leaves nothing behind, whichever system call fails, and the switch takes another Offload.
func TestFaults(t *testing.T) {
	h := netns.New(t).Host("h")
	sw := check.Must(vswitch.New(nil))(t)
	defer sw.Close()
	fault.Each(t, h.Enter, func() error {
		o, err := New(sw, nil)
		if err != nil && strings.Contains(err.Error(), "SO_NETNS_COOKIE") {
			return nil // whatever the kernel says about that
		}
		if err != nil {
			return err
		}
		return o.Close()
	}, func(x fault.Fault, err error) {
		if errors.Is(err, vswitch.ErrOffload) {
			t.Errorf("%v: %v", x, err)
		}
	})
}

// TestFaultsOfTables: an entry that the kernel has not deleted never gets the slot, and with it the validity, of another flow, and
// is deleted later.
func TestFaultsOfTables(t *testing.T) {
	h := rigHost(t)
	var log strings.Builder
	r := newRigWith(t, h, &Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	table := r.vsi.FDB()
	var p, q vswitch.Pair
	n := 0
	next := func() vswitch.Pair {
		n += 2
		return vswitch.Pair{From: r.dests[0], Src: frame.MACFrom(0x020000000000 + uint64(n)), Dst: frame.MACFrom(0x020000000001 + uint64(n))}
	}
	set := func(p vswitch.Pair) error {
		return errors.Join(table.Set(p.Src, p.From, fdb.Static), table.Set(p.Dst, r.dests[1], fdb.Static))
	}
	del := func(p vswitch.Pair) {
		table.Delete(p.Src)
		table.Delete(p.Dst)
	}
	reset := func() {
		del(p)
		del(q)
		clear(r.o.refused)
		clear(r.o.asked)
		r.o.renew()
		r.o.tick()
	}
	fault.Each(t, h.Enter, func() error {
		reset()
		p, q = next(), next()
		if err := set(p); err != nil {
			return err
		}
		r.o.offer(p)
		del(p)
		r.o.renew()
		r.o.tick()
		if err := set(q); err != nil {
			return err
		}
		del(q) // as many changes as there were of the others
		if err := errors.Join(set(q), set(p)); err != nil {
			return err
		}
		r.o.offer(q)
		return nil
	}, func(x fault.Fault, _ error) {
		if text := log.String(); x.Call == "membarrier" && !strings.Contains(text, "membarrier: "+x.Errno.Error()) {
			t.Errorf("%v: the log says %q", x, text)
		}
		log.Reset()
		if r.o.entries[p] == nil && r.carried(p) {
			t.Errorf("%v: %v is carried, which has no flow", x, p)
		}
		reset()
		r.o.tick()
		check.OK(t, set(p))
		if r.o.offer(p); r.o.entries[p] == nil || !r.carried(p) {
			t.Errorf("%v: %v is not carried any more", x, p)
		}
		reset()
		r.o.tick()
		if len(r.o.dying) != 0 || len(r.o.free) != int(r.o.next) {
			t.Errorf("%d slots of %d are free, %d wait", len(r.o.free), r.o.next, len(r.o.dying))
		}
	})
	h.Do(func() { check.OK(t, r.o.Close()) })
}
