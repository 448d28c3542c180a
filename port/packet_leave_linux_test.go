package port

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/filter"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// What a port leaves to an underlay it does not read, from the start or from a call on, but it does read it in a VLAN, to another
// MAC, and once the list is another.
func TestPacketLeave(t *testing.T) {
	mac := frame.MAC{2, 0, 0, 0, 0, 1}
	list := []Address{{mac, netip.MustParseAddr("fd09::1"), 0}, {mac, netip.MustParseAddr("10.9.0.1"), 4789}}
	own, last := udp4(mac, 7000, 4789, nil), fake.Ethernet(60, 9)
	others := [][]byte{udp4(mac, 7000, 4790, nil), udp4(frame.MAC{2, 0, 0, 0, 0, 2}, 7000, 4789, nil), fake.Tagged(own, 0, 5), last}
	for _, queues := range []int{1, 2} {
		p, _, far := cabled(t, &PacketConfig{Queues: queues, Leave: list})
		wants := func(want ...[]byte) {
			t.Helper()
			far.Inject("eth0", append([][]byte{own}, others...)...)
			for len(want) > 0 { // flows of two queues have no order
				b := frame.NewBatch(nil)
				for i := range p.Readers() {
					if waitingIn(t, p, i) {
						must(t, p.Readers()[i].Read(b))
						for k := range b.Frames {
							want = without(t, want, b.Frames[k].Bytes())
						}
					}
				}
			}
			if waiting(t, p) != 0 {
				t.Error("a frame more")
			}
		}
		wants(others...)
		must(t, p.Leave(list[:1]))
		wants(append([][]byte{own}, others...)...)
		must(t, p.Leave(list))
		wants(others...)
		must(t, p.Leave(nil))
		wants(append([][]byte{own}, others...)...)
		p.Close()
		if err := p.Leave(list); err == nil {
			t.Error("a closed port takes a list")
		}
	}
	p, _, _ := cabled(t, nil)
	for _, c := range []struct {
		list []Address
		says string
	}{
		{make([]Address, filter.MaxAddresses+1), "Packet.Leave: 65: must be at most 64 addresses"},
		{[]Address{{MAC: mac, Port: 4789}}, "Packet.Leave[0].IP: required"},
	} {
		if err := p.Leave(c.list); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
		if err := (&PacketConfig{Leave: c.list}).Check(); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(c.says, "Packet.")) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}

// without removes a frame from a list that has it.
func without(t *testing.T, list [][]byte, b []byte) [][]byte {
	t.Helper()
	for i := range list {
		if bytes.Equal(list[i], b) {
			return append(append([][]byte{}, list[:i]...), list[i+1:]...)
		}
	}
	t.Fatalf("read %x", b)
	return nil
}
