package underlay

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// What a Portable cannot do is an error that names the field, or the system's.
func TestPortableErrors(t *testing.T) {
	boom := errors.New("boom")
	local := netip.MustParseAddrPort("127.0.0.1:0")
	for _, tc := range []struct {
		field string
		cfg   UDPConfig
		want  error
	}{
		{"Mark", UDPConfig{Mark: 1}, errors.ErrUnsupported},
		{"Device", UDPConfig{Device: "lo"}, errors.ErrUnsupported},
		{"Checksum", UDPConfig{Checksum: ChecksumOff}, errors.ErrUnsupported},
		{"ZeroChecksum6RX", UDPConfig{ZeroChecksum6RX: true}, errors.ErrUnsupported},
		{"BusyPoll", UDPConfig{BusyPoll: time.Microsecond}, errors.ErrUnsupported},
		{"Queues", UDPConfig{Queues: 2}, errors.ErrUnsupported},
		{"DefaultTTL", UDPConfig{DefaultTTL: 256}, nil},
		{"MulticastDevice", UDPConfig{MulticastDevice: "nope"}, syscall.ENODEV},
		{"Control", UDPConfig{Control: func(string, string, syscall.RawConn) error { return boom }}, boom},
	} {
		u, err := ListenPortable(local, &tc.cfg)
		if err == nil {
			u.Close()
			t.Errorf("%s: no error", tc.field)
		} else if !strings.HasPrefix(err.Error(), "underlay: UDPConfig."+tc.field+": ") || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.field, err)
		}
	}
	u := portable(true)(t, "127.0.0.1:0", &UDPConfig{Queues: 1, SrcPorts: PortRange{45100, 45100}})
	if _, err := ListenPortable(u.LocalAddr(), nil); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	if _, err := ListenPortable(local, &UDPConfig{SrcPorts: PortRange{45100, 45100}}); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "UDPConfig.SrcPorts") {
		t.Error(err)
	}
	if _, err := u.Sockets(TxConfig{Checksum: ChecksumOff}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if err := u.Leave(netip.MustParseAddr("239.1.1.1")); err == nil {
		t.Error("left what was not joined")
	}
	u.Close()
	ds := []frame.Datagram{to("x", 0, endpoint(t, u.LocalAddr()))}
	if err := u.Sender(0).Send(ds); !errors.Is(err, net.ErrClosed) || ds[0].Drop != frame.PortDown {
		t.Errorf("%v, %v", err, ds[0].Drop)
	}
	if err := u.Join(netip.MustParseAddr("239.1.1.1")); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// A run leaves as single datagrams, in order and in pieces of any size, to each endpoint.
func TestPortableRuns(t *testing.T) {
	for _, batch := range []bool{true, false} {
		families(t, func(t *testing.T, la, lb string) {
			listen := portable(batch)
			a, b, c := listen(t, la, nil), listen(t, lb, nil), listen(t, lb, nil)
			d, want := runOf(99*700+3, 700, 8, 5, endpoint(t, b.LocalAddr()), endpoint(t, c.LocalAddr()))
			send(t, a, d)
			for _, u := range []ported{b, c} {
				for i, got := range payloads(receive(t, u, len(want))) {
					if got != want[i] {
						t.Fatalf("datagram %d of %d is another", i, len(want))
					}
				}
			}
			long := to(strings.Repeat("x", longest+1), 0, endpoint(t, b.LocalAddr()))
			ds := []frame.Datagram{long}
			send(t, a, ds...)
			if st := a.Stats(); ds[0].Drop != frame.TooBig || st.TxRuns != 0 || st.TxDatagrams != uint64(2*len(want)) {
				t.Errorf("%v, %+v", ds[0].Drop, st)
			}
		})
	}
}

// Both directions of a change of TOS, TTL and DF within one Send.
func TestPortableMarks(t *testing.T) {
	eachUDPFamily(t, func(t *testing.T, listen opener, la, lb string) {
		a, b := listen(t, la, &UDPConfig{DefaultTTL: 50}), listen(t, lb, nil)
		var ds []frame.Datagram
		var want []frame.Outer
		for i := range 60 {
			d := to("x", 0, endpoint(t, b.LocalAddr()))
			d.TOS, d.TTL, d.DF = byte(i%3*4+i%2), byte(i%4), i%5 > 0
			ds = append(ds, d)
			want = append(want, frame.Outer{TOS: d.TOS, TTL: max(d.TTL, byte(50*(1-min(i%4, 1))))})
		}
		send(t, a, ds...)
		for i, r := range receive(t, b, len(ds)) {
			if r.Outer.TOS != want[i].TOS || r.Outer.TTL != want[i].TTL {
				t.Errorf("datagram %d: TOS %d, TTL %d, want %d, %d", i, r.Outer.TOS, r.Outer.TTL, want[i].TOS, want[i].TTL)
			}
		}
	})
}

// What a socket on the port of all addresses hears beside its groups is not for the underlay.
func TestPortableGroupTakesNothingElse(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		u := portable(true)(t, "10.9.0.1:4789", nil)
		if err := u.Join(netip.MustParseAddr("239.1.1.1")); err != nil {
			t.Error(err)
			return
		}
		c, _ := plainSocket(t, "udp4", "127.0.0.1:0")
		for _, at := range []string{"127.0.0.1:4789", "127.0.0.2:4789"} {
			if _, err := c.WriteToUDPAddrPort([]byte("stray"), netip.MustParseAddrPort(at)); err != nil {
				t.Error(err)
			}
		}
		time.AfterFunc(20*time.Millisecond, u.Pause)
		if err := u.Readers()[1].Read(frame.NewBatch(nil)); !errors.Is(err, frame.ErrPaused) {
			t.Errorf("a stray came in: %v", err)
		}
	})
}
