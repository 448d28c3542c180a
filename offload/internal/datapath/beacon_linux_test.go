package datapath

import (
	"os"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// In another network namespace nothing is carried, also where somebody has a socket at the address of the beacon, until there is
// a beacon; one that is bound to a device is for frames of that device.
func TestBeacon(t *testing.T) {
	n := netns.New(t)
	home, other := n.Host("home"), n.Host("other")
	n.Link(home, "", other, "")
	var r *rig
	home.Do(func() { r = newRig(t) })
	const slot = 2000
	r.d.Slot(slot).Validate(Validity{1, 0, 0})
	eth0, key := index(t, other, "eth0"), r.key(0, 0)
	key.Ifindex = eth0
	r.out(key, r.flow(slot, 0, 0))
	sent := shape{dst: key.Dst, src: key.Src}.bytes()
	got := received(0, r.wrap(shape{dst: macNear, src: macFar}.bytes()), 0)
	want := func(what string, h *netns.Host, lo, bound Cause) {
		t.Helper()
		m := mac(t, h, "eth0")
		toEth0 := append(m[:], got[len(m):]...)
		h.Do(func() {
			for _, c := range []struct {
				p    Program
				b    []byte
				dev  uint32
				want Cause
			}{{PortIn, sent, 1, lo}, {PortOut, sent, 1, lo}, {TunnelIn, got, 1, lo}, {PortIn, sent, eth0, bound}, {TunnelIn, toEth0, eth0, bound}} {
				if is := r.d.why(t, c.p, c.b, Meta{Ifindex: c.dev}); is != c.want {
					t.Errorf("%s: program %d, device %d: cause %v, not %v", what, c.p, c.dev, is, c.want)
				}
			}
		})
	}
	const carried = NumCauses
	want("at home", home, carried, carried)
	want("elsewhere", other, Namespace, Namespace)
	for _, a := range addresses {
		var pretender *os.File
		other.Do(func() { pretender = check.Must(openBeacon(a, r.d.port, 0))(t) })
		want("with a socket of somebody else's", other, Namespace, Namespace)
		check.OK(t, pretender.Close())
	}
	var beacon *os.File
	other.Do(func() { beacon = check.Must(r.d.Beacon(int(eth0)))(t).(*os.File) })
	want("with a beacon that is bound", other, Namespace, carried)
	check.OK(t, beacon.Close())
	want("without it", other, Namespace, Namespace)
	check.OK(t, r.d.beacon.Close())
	want("at home without a beacon", home, Namespace, Namespace)
	r.d.beacon = nil
}
