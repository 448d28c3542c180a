package underlay

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refused checks the error of a constructor: how it begins, and what it wraps if want is not nil.
func refused(t *testing.T, u io.Closer, err error, begins string, want error) {
	t.Helper()
	if err == nil {
		u.Close()
		t.Errorf("no error, want %s...", begins)
	} else if !strings.HasPrefix(err.Error(), begins) || want != nil && !errors.Is(err, want) {
		t.Errorf("%v, want %s... and %v", err, begins, want)
	}
}

func TestUDPConfigErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		field string
		cfg   UDPConfig
		want  error
	}{
		{"SrcPorts", UDPConfig{SrcPorts: PortRange{5, 4}}, nil},
		{"SrcPorts", UDPConfig{SrcPorts: PortRange{0, 4}}, nil},
		{"SrcPortCount", UDPConfig{SrcPortCount: -1}, nil},
		{"SrcPortCount", UDPConfig{SrcPortCount: 1025}, nil},
		{"Device", UDPConfig{Device: strings.Repeat("x", 16)}, nil},
		{"Device", UDPConfig{Device: "nosuchdevice"}, nil},
		{"DefaultTTL", UDPConfig{DefaultTTL: 256}, nil},
		{"DefaultTTL", UDPConfig{DefaultTTL: -1}, nil},
		{"Checksum", UDPConfig{Checksum: 3}, nil},
		{"RecvBuffer", UDPConfig{RecvBuffer: -1}, nil},
		{"SendBuffer", UDPConfig{SendBuffer: -1}, nil},
		{"MaxDatagram", UDPConfig{MaxDatagram: 65536}, nil},
		{"MaxDatagram", UDPConfig{MaxDatagram: 1}, nil},
		{"Queues", UDPConfig{Queues: -1}, nil},
		{"BusyPoll", UDPConfig{BusyPoll: -1}, nil},
		{"BusyPoll", UDPConfig{BusyPoll: time.Millisecond + 1}, nil},
		{"Queues", UDPConfig{Queues: 1000}, nil},
		{"Control", UDPConfig{Control: func(string, string, syscall.RawConn) error { return boom }}, boom},
	} {
		u, err := ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), &tc.cfg)
		refused(t, u, err, "underlay: UDPConfig."+tc.field+": ", tc.want)
	}
}

func TestUDPLocalAddressErrors(t *testing.T) {
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	shared := listen(t, "127.0.0.1:0", &UDPConfig{Queues: 2}).LocalAddr()
	for _, tc := range []struct {
		local netip.AddrPort
		cfg   *UDPConfig
		want  error
	}{
		{netip.AddrPort{}, nil, nil},
		{netip.MustParseAddrPort("239.1.1.1:4789"), nil, nil},
		{netip.MustParseAddrPort("[fe80::1%nosuchdevice]:4789"), nil, nil},
		{netip.MustParseAddrPort("192.0.2.77:0"), nil, syscall.EADDRNOTAVAIL},
		{netip.MustParseAddrPort("[2001:db8::77]:0"), nil, syscall.EADDRNOTAVAIL},
		{taken.LocalAddr().(*net.UDPAddr).AddrPort(), nil, syscall.EADDRINUSE},
		{taken.LocalAddr().(*net.UDPAddr).AddrPort(), &UDPConfig{Queues: 2}, syscall.EADDRINUSE},
		{shared, &UDPConfig{Queues: 2}, syscall.EADDRINUSE},
	} {
		u, err := ListenUDP(tc.local, tc.cfg)
		refused(t, u, err, "underlay: ", tc.want)
	}
}

func TestUDPAddressForms(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		for _, s := range []string{"0.0.0.0:0", "[::]:0", "[::ffff:127.0.0.1]:0"} {
			u := listen(t, s, nil)
			if got := u.LocalAddr(); got.Port() == 0 || got.Addr() != netip.MustParseAddrPort(s).Addr().Unmap() {
				t.Errorf("%s: bound to %v", s, got)
			}
			if u.MTU() <= 0 {
				t.Errorf("%s: MTU %d", s, u.MTU())
			}
			e := endpoint(t, netip.AddrPortFrom(netip.IPv6LinkLocalAllNodes(), u.LocalAddr().Port()))
			e.IP = [16]byte{15: 1}
			if u.Is4() {
				e.IP = [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}
			}
			send(t, u, to("x", 0, e))
			if r := receive(t, u, 1)[0]; r.Outer.Dst.IP != e.IP {
				t.Errorf("%s: to %v", s, r.Outer.Dst)
			}
		}
	})
}
