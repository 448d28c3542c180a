package underlay

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestSending sends one datagram of each flow, and finds its source port in what Sending says.
func TestSending(t *testing.T) {
	for _, c := range []struct {
		local string
		cfg   UDPConfig
		noSum bool
	}{
		{"127.0.0.1:0", UDPConfig{}, true},
		{"127.0.0.1:0", UDPConfig{Checksum: ChecksumOn, SrcPorts: PortRange{50000, 50100}, Device: "lo"}, false},
		{"[::1]:0", UDPConfig{}, false},
		{"[::1]:0", UDPConfig{Checksum: ChecksumOff}, true},
	} {
		u := check.Must(ListenUDP(netip.MustParseAddrPort(c.local), &c.cfg))(t)
		s, ok := u.Sending(0)
		if !ok || s.NoSum != c.noSum || s.Device != c.cfg.Device || len(s.SrcPorts) != 16 {
			t.Errorf("%v, %+v: %+v, %v", c.local, c.cfg, s, ok)
		}
		if _, ok := u.Sending(9); ok {
			t.Error("there is a set 9")
		}
		to := check.Must(net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(u.LocalAddr().Addr(), 0))))(t)
		e := check.Must(frame.EndpointFrom(to.LocalAddr().(*net.UDPAddr).AddrPort()))(t)
		check.OK(t, to.SetReadDeadline(time.Now().Add(10*time.Second)))
		for flow := range uint16(64) {
			if !u.Is4() && c.noSum {
				break // Linux drops what has no checksum, unless the receiver asks for it
			}
			ds := []frame.Datagram{{Parts: [][]byte{{1, 2, 3}}, To: []frame.Endpoint{e}, Flow: flow * 1021, DF: true}}
			check.OK(t, u.Sender(0).Send(ds))
			b := make([]byte, 10)
			_, from, err := to.ReadFromUDPAddrPort(b)
			check.OK(t, err)
			if !slices.Contains(s.SrcPorts, from.Port()) {
				t.Errorf("sent from port %d, not one of %d", from.Port(), s.SrcPorts)
			}
		}
		to.Close()
		u.Close()
		if s, ok := u.Sending(0); ok && len(s.SrcPorts) == 0 {
			t.Error("no ports after Close, and no error")
		}
	}
}
