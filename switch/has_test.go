package vswitch

import (
	"errors"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// peersOf is a tunnel that has the peers in it.
type peersOf struct {
	*stubTunnel
	names map[uint16]string
}

func (p *peersOf) PeerName(n uint16) string { return p.names[n] }

// An entry may name the switch itself, members of its segment, and peers behind those.
func TestEntriesForWhatIsThere(t *testing.T) {
	inLab(t, func(l *lab) {
		_, a := l.port("a", 0)
		tun := &peersOf{&stubTunnel{stub: newStub("t")}, map[uint16]string{4: "192.0.2.4"}}
		far := check.Must(l.v.Attach(tun, 1))(t)
		v2 := check.Must(l.s.VSI(2, nil))(t)
		other := check.Must(v2.Attach(newStub("other"), 0))(t)
		for _, c := range []struct {
			name      string
			d         frame.Dest
			ok, flush bool
		}{
			{"the switch itself", 0, true, false},
			{"a port", a.Dest(0), true, true},
			{"a tunnel's flood list", far.Dest(0), true, true},
			{"a peer", far.Dest(4), true, true},
			{"a filter", frame.Filter, true, false},
			{"no peer", far.Dest(5), false, false},
			{"a peer of a port", a.Dest(4), false, false},
			{"a peer of the switch", frame.NewDest(0, 4), false, false},
			{"a port of another segment", other.Dest(0), false, true},
			{"no port", frame.NewDest(77, 0), false, false},
		} {
			err := l.v.FDB().Set(mac(9), c.d, fdb.Static)
			if c.ok && err != nil || !c.ok && !errors.Is(err, fdb.ErrNoDest) {
				t.Errorf("%s: %v", c.name, err)
			}
			if l.v.FDB().Delete(mac(9)) != c.ok {
				t.Errorf("%s: entry %v", c.name, !c.ok)
			}
			// Of ports and peers MACs are learned, in every segment.
			if err, ok := l.s.FlushPeer(c.d), c.flush; ok != (err == nil) || !ok && !errors.Is(err, fdb.ErrNoDest) {
				t.Errorf("%s: FlushPeer: %v", c.name, err)
			}
		}
		check.OK(t, v2.FDB().Set(mac(9), other.Dest(0), fdb.Static))
		check.OK(t, far.Detach())
		if err := l.v.FDB().Set(mac(9), far.Dest(4), fdb.Static); !errors.Is(err, fdb.ErrNoDest) {
			t.Errorf("a peer of a tunnel that has gone: %v", err)
		}
	})
}

// Whoever sets entries meanwhile: once Detach has returned, none names the attachment.
func TestEntriesWhileDetached(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v, v2 := check.Must(s.VSI(1, nil))(t), check.Must(s.VSI(2, nil))(t)
	trunk := newStub("trunk")
	check.Must(v2.Attach(trunk, 20))(t) // so that its number lives on
	for range 200 {
		a := check.Must(v.Attach(trunk, 10))(t)
		check.OK(t, v.FDB().Set(mac(9), a.Dest(0), fdb.Static))
		var wg sync.WaitGroup
		wg.Go(func() {
			for v.FDB().Set(mac(9), a.Dest(0), fdb.Static) == nil {
			}
		})
		check.OK(t, a.Detach())
		if d, ok := v.FDB().Lookup(mac(9)); ok {
			t.Fatalf("an entry at %v", d)
		}
		wg.Wait()
		if d, ok := v.FDB().Lookup(mac(9)); ok {
			t.Fatalf("an entry at %v, later", d)
		}
	}
}
