package vtep

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Events tell what Down (and so Switch.State) says.
func TestDownEvents(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	one, two := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	g := check.Must(v.Group(one, two))(t)
	dead := map[uint16]bool{}
	v.Control().Tell(func(e frame.Event) {
		switch e.Kind {
		case frame.EventPeerDead:
			dead[e.Dest.Peer()] = true
		case frame.EventPeerAlive:
			delete(dead, e.Dest.Peer())
		}
	})
	same := func(what string) {
		t.Helper()
		for _, n := range []uint16{one, two, g} {
			if v.Down(n) != dead[n] {
				t.Errorf("%s: peer %d (%s): Down %v, events say dead %v", what, n, v.PeerName(n), v.Down(n), dead[n])
			}
		}
	}
	check.OK(t, v.SetDown(at(1).Addr(), true))
	check.OK(t, v.SetDown(at(2).Addr(), true))
	same("both dead")
	check.OK(t, v.SetDown(at(2).Addr(), false))
	same("one alive")
	check.OK(t, v.SetDown(at(2).Addr(), true))
	same("both dead again")
}

// A reader that is told of the peers from before is told which are dead.
func TestDownBeforeTell(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	one := addPeer(t, v, at(1))
	check.OK(t, v.SetDown(at(1).Addr(), true))
	var told []string
	v.Control().Tell(func(e frame.Event) { told = append(told, fmt.Sprint(e.Kind)) })
	if v.Down(one) && !slices.Contains(told, "peer-dead") {
		t.Errorf("Down, and told %v", told)
	}
}
