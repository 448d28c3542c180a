package offload

import (
	"strconv"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
)

// TestDeviceMadeAgain: the underlay's device is deleted and made again at once, with the same number, so that all is as it was but
// for the program, which has gone with the device. The flow from the peer gets another one.
func TestDeviceMadeAgain(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	r.hosts(r.dests[0], r.dests[3])
	p := r.pair(r.dests[3], macB, macA)
	h.Do(func() {
		r.o.offer(p)
		check.True(t, r.carried(p), "not carried: %+v", check.Must(r.o.Stats())(t))
		at := need{r.under(), datapath.TunnelIn}
		h.IP("link", "del", "eth0")
		h.IP("link", "add", "eth0", "index", strconv.Itoa(at.index), "mtu", "1500", "type", "bridge")
		h.Addr("eth0", "192.0.2.1/24")
		h.Up("eth0")
		h.Until("the device has gone", func() bool { r.o.rerouted(); return r.o.devices.with[at] == nil })
		r.o.renew()
		check.True(t, r.carried(p), "not carried any more")
		check.True(t, r.o.devices.with[at] != nil, "no program")
		check.OK(t, r.o.Close())
	})
}
