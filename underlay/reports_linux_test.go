package underlay

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// Which errors say that a packet did not get there, for its sender to be told.
func TestUnreachableCodes(t *testing.T) {
	for _, tc := range []struct {
		name              string
		origin, typ, code uint8
		want              bool
	}{
		{"network", unix.SO_EE_ORIGIN_ICMP, 3, 0, true}, // RFC 2003, section 4.1
		{"host", unix.SO_EE_ORIGIN_ICMP, 3, 1, true},
		{"protocol", unix.SO_EE_ORIGIN_ICMP, 3, 2, true},
		{"port", unix.SO_EE_ORIGIN_ICMP, 3, 3, false},
		{"too big", unix.SO_EE_ORIGIN_ICMP, 3, 4, false},
		{"source route", unix.SO_EE_ORIGIN_ICMP, 3, 5, false},
		{"prohibited", unix.SO_EE_ORIGIN_ICMP, 3, 13, true},
		{"source quench", unix.SO_EE_ORIGIN_ICMP, 4, 0, false}, // section 4.2
		{"redirect", unix.SO_EE_ORIGIN_ICMP, 5, 1, false},      // section 4.3
		{"time exceeded", unix.SO_EE_ORIGIN_ICMP, 11, 0, true}, // section 4.4
		{"parameter", unix.SO_EE_ORIGIN_ICMP, 12, 0, false},    // section 4.5
		{"no route", unix.SO_EE_ORIGIN_ICMP6, 1, 0, true},      // RFC 2473, section 8
		{"address", unix.SO_EE_ORIGIN_ICMP6, 1, 3, true},
		{"port", unix.SO_EE_ORIGIN_ICMP6, 1, 4, false},
		{"hop limit", unix.SO_EE_ORIGIN_ICMP6, 3, 0, true},
		{"next header", unix.SO_EE_ORIGIN_ICMP6, 4, 1, true},
		{"option", unix.SO_EE_ORIGIN_ICMP6, 4, 2, false},
		{"our own interface", unix.SO_EE_ORIGIN_LOCAL, 3, 1, false},
	} {
		u, told := new(base), false
		f := func(frame.Endpoint, []byte) { told = true }
		u.unreachable.Store(&f)
		if u.countError(&sys.QueuedError{Errno: unix.EHOSTUNREACH, Origin: tc.origin, Type: tc.typ, Code: tc.code}); told != tc.want {
			t.Errorf("%s, type %d, code %d: told %v", tc.name, tc.typ, tc.code, told)
		}
	}
}

// The watch has the sockets that are open.
func TestErrWatchForgets(t *testing.T) {
	u := listen(t, "127.0.0.1:0", &UDPConfig{Checksum: ChecksumAuto})
	want := func(when string) {
		t.Helper()
		var open []*txSock
		u.mu.Lock()
		for _, p := range u.ranges {
			p.all(func(s *txSock) { open = append(open, s) })
		}
		u.mu.Unlock()
		u.watch.mu.Lock()
		defer u.watch.mu.Unlock()
		if len(u.watch.socks) != len(open) {
			t.Errorf("%s: %d sockets are watched, %d open", when, len(u.watch.socks), len(open))
		}
		for _, s := range open {
			if u.watch.socks[s.fd] != s {
				t.Errorf("%s: port %d is not watched", when, s.port)
			}
		}
	}
	want("at first")
	run, _ := runOf(64, 8, 0, 0, endpoint(t, u.LocalAddr()))
	run.DF = false
	send(t, u, run)
	want("with runs without DF")
	u.Close()
	if n := len(u.watch.socks); n != 0 {
		t.Errorf("%d sockets are watched after Close", n)
	}
}
