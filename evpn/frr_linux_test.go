package evpn

import (
	"slices"
	"testing"
)

// has reports whether FRR has a route, by how it writes its key.
func (l *aLab) has(key string) bool { return l.frr.HasEVPN(key) }

// kernel reports whether a device of FRR's host leads a MAC to a VTEP.
func (l *aLab) kernel(dev, mac, vtep string) bool {
	return slices.Contains(l.leaf.Peers(dev, mac), vtep)
}

// A leaf of FRR and ours: hosts in one segment, and hosts in different ones by the L3VNI, each way.
func TestFRR(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.bridged.Until("FRR's flood list and ours", func() bool { return l.kernel("vx100", "00:00:00:00:00:00", oursAddr) && l.us.floods(100) == 1 })
	if ttl := l.bridged.PingTTL("172.16.0.2"); ttl != 64 {
		t.Errorf("bridged: TTL %d", ttl)
	}
	l.bridged.Until("our host in FRR and its kernel", func() bool {
		return l.has("[2]:[0]:[48]:[02:00:00:00:01:01]") && l.has("[2]:[0]:[48]:[02:00:00:00:01:01]:[32]:[172.16.0.11]") && l.kernel("vx100", "02:00:00:00:01:01", oursAddr)
	})
	l.routed.Ping("172.18.1.1", 1)
	l.routed.Until("our prefix and host in FRR", func() bool {
		return l.has("[5]:[0]:[24]:[172.18.1.0]") && l.has("[2]:[0]:[48]:[02:00:00:00:01:02]:[32]:[172.18.1.2]")
	})
	l.routed.Until("FRR's host routes, and its prefix", func() bool {
		return l.us.routes("172.16.0.2/32") == 1 && l.us.routes("172.16.0.0/24") == 1
	})
	if ttl := l.routed.PingTTL("172.16.0.2"); ttl != 62 {
		t.Errorf("routed: TTL %d", ttl)
	}
	if ttl := l.theirs.PingTTL("172.18.1.2"); ttl != 62 {
		t.Errorf("routed from FRR: TTL %d", ttl)
	}
	if st := l.us.speaker.Status(); len(st.LeftOut) != 0 {
		t.Errorf("left out: %v", st.LeftOut)
	}
}
