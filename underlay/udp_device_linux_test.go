package underlay

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// Every socket there is follows the device, each queue and each kind, and nothing changes
// while there is none.
func TestDeviceMadeAgain(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		u := listen(t, "10.9.0.1:4789", &UDPConfig{Device: "va", Queues: 3})
		d, _ := runOf(20, 10, 4, 0, endpoint(t, u.LocalAddr()))
		e := d
		e.DF = true
		send(t, u, d, e, frame.Datagram{}) // opens three kinds
		boundTo := func(index int) (n int) {
			var socks []*sock
			for _, r := range u.readers {
				socks = append(socks, r.sock)
			}
			u.mu.Lock()
			u.ranges[0].all(func(s *txSock) { socks = append(socks, s.sock) })
			u.mu.Unlock()
			for _, s := range socks {
				if sockopt(t, s, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX) == index {
					n++
				}
			}
			return n
		}
		const all = 3 + 3*16
		was, err := net.InterfaceByName("va")
		if err != nil || boundTo(was.Index) != all || u.deviceChanged() {
			t.Errorf("%v: %d sockets are bound", err, boundTo(was.Index))
			return
		}
		underlaytest.IP(t, "link del va")
		if u.deviceChanged() {
			t.Error("there is no device, and it is another")
		}
		if u.MTU() != datagrams.DefaultMTU {
			t.Errorf("MTU %d without a device", u.MTU())
		}
		underlaytest.IP(t, "link add va mtu 1400 type veth peer name vb")
		is, err := net.InterfaceByName("va")
		if err != nil || is.Index == was.Index {
			t.Error(err, is)
			return
		}
		fake.Until(t, "all sockets on the new device", func() bool { return boundTo(is.Index) == all })
		if u.MTU() != 1400 || u.deviceChanged() {
			t.Errorf("MTU %d", u.MTU())
		}
	})
}
