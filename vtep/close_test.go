package vtep

import (
	"errors"
	"net"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// After Close nothing is changed any more, and says so; what only looks, or takes away, is as it
// was.
func TestClosed(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	flood(t, v, vni, at(1))
	n := check.Must(v.AddPeer(at(2)))(t)
	check.OK(t, v.Close())
	check.OK(t, v.Close())
	check.True(t, u.closed == 1, "the underlay was closed %d times", u.closed)
	second := func(_ uint16, err error) error { return err }
	for name, err := range map[string]error{
		"Open": v.Control().Open(vni + 1), "SetFlood": v.SetFlood(vni, at(3)), "Allow": v.Allow(vni, at(3)),
		"AddPeer": second(v.AddPeer(at(4))), "NextHop": second(v.NextHop(at(4), 9)), "Group": second(v.Group(n)),
		"SetPeers": v.SetPeers(nil), "SetUnderlay": v.SetUnderlay(fakeAt(at(9))),
	} {
		check.True(t, errors.Is(err, net.ErrClosed), "%s: %v", name, err)
	}
	if got := v.Flood(vni); len(got) != 1 || got[0] != at(1) {
		t.Errorf("the flood list is %v", got)
	}
	check.OK(t, v.SetFlood(vni))
	v.DeletePeer(n)
	v.Control().Shut(vni)
}

// Handlers of a VTEP that is closed would never be called.
func TestHandlersAfterClose(t *testing.T) {
	v := gpeVTEP(t, Config{}, fake4())
	check.OK(t, v.Close())
	check.ErrorIs(t, "SetOAM", v.SetOAM(&hooks{}), net.ErrClosed)
	check.ErrorIs(t, "SetServices", v.SetServices(&hooks{}), net.ErrClosed)
}
