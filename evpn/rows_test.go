package evpn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A MAC that the configuration has on a port is advertised, unless it is that of a group: to peers with a row for it, the group would be
// at this VTEP alone.
func TestConfiguredGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 1, Config{})
		defer f.close()
		l := f.leaves[0]
		p := l.plug()
		host, group := frame.MAC{2, 0, 0, 0, 1, 1}, frame.MAC{1, 0, 0x5e, 0, 0, 5}
		check.OK(t, l.node.Program("other", control.Update{Add: []control.Row{
			control.MAC{VNI: 100, MAC: host, Port: p.Name()}, control.MAC{VNI: 100, MAC: group, Port: p.Name()}}}))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		macs := []frame.MAC{}
		for r := range l.speaker.Routes() {
			if r.Type == 2 {
				macs = append(macs, r.MAC)
			}
		}
		check.Slice(t, "MACs", macs, []frame.MAC{host})
	})
}
