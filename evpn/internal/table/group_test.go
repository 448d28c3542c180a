package table

import (
	"strings"
	"testing"
)

// All rows behind VTEPs have the name of our tunnel.
func TestTunnelNamed(t *testing.T) {
	l := newLab(t, nil)
	l.Learned(0, peer, multicast())
	l.Learned(0, peer, prefixRoute("10.9.0.0/16"))
	l.Learned(0, peer, macIP(mac(1), "10.0.0.1"))
	l.Learned(0, peer, by(2, whole()))
	l.Learned(0, peer, by(2, alias()))
	l.Learned(0, peer, onSegment(by(2, macIP(mac(2), ""))))
	named := func(what string, want, all int) {
		t.Helper()
		l.flush()
		n := 0
		for _, r := range l.list() {
			if strings.Contains(r, "vy") {
				n++
			}
		}
		if n != want || len(l.list()) != all {
			t.Errorf("%s: %d rows have a tunnel, want %d of %d: %q", what, n, want, all, l.list())
		}
	}
	named("without a name", 0, 5)
	l.SetSegment(0, Segment{VNI: 100, VTEP: at(ours), Tunnel: "vy"})
	l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours), Tunnel: "vy"})
	named("with one", 5, 5)
	l.home(nil)
	named("a host behind our port", 3, 4)
}
