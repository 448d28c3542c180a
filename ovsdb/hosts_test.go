package ovsdb

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
)

// A host is in the database while its MAC is on a port of a bound network, with each of its addresses.
func TestHosts(t *testing.T) {
	m1, m2 := frame.MAC{2, 0, 0, 0, 0, 1}, frame.MAC{2, 0, 0, 0, 0, 2}
	ip, here := netip.MustParseAddr("10.0.0.1"), frame.NewDest(1, 0)
	h := hosts{macs: map[macKey]bool{}, ips: map[ipKey]frame.MAC{}}
	in := []table.Segment{{VNI: 5, ID: "a"}}
	want := func(what string, hosts ...table.Host) {
		t.Helper()
		all := map[table.Host]bool{}
		for _, x := range hosts {
			all[x] = true
		}
		if got := h.in(in); !maps.Equal(got, all) {
			t.Errorf("%s: %v, want %v", what, got, all)
		}
	}
	with := func(mac frame.MAC, ip netip.Addr) table.Host {
		return table.Host{Segment: "a", MAC: mac.String(), IP: ip}
	}
	h.carry(&frame.Event{Kind: frame.EventMACLearned, VNI: 5, MAC: m1, Dest: here})
	h.carry(&frame.Event{Kind: frame.EventMACLearned, VNI: 6, MAC: m2, Dest: here})
	want("a MAC, and one of another segment", with(m1, netip.Addr{}))
	h.carry(&frame.Event{Kind: frame.EventNeighbourLearned, VNI: 5, MAC: m1, IP: ip, Dest: here})
	want("an address", with(m1, ip))
	h.carry(&frame.Event{Kind: frame.EventMACLearned, VNI: 5, MAC: m2, Dest: here})
	h.carry(&frame.Event{Kind: frame.EventNeighbourMoved, VNI: 5, MAC: m2, OldMAC: m1, IP: ip, Dest: here})
	want("an address that has another MAC", with(m1, netip.Addr{}), with(m2, ip))
	h.carry(&frame.Event{Kind: frame.EventMACMoved, VNI: 5, MAC: m2})
	want("a MAC that has left", with(m1, netip.Addr{}))
	h.carry(&frame.Event{Kind: frame.EventMACAged, VNI: 5, MAC: m1, Dest: here})
	want("none")
	h.carry(&frame.Event{Kind: frame.EventOverflow})
	h.carry(&frame.Event{Kind: frame.EventMACLearned, VNI: 5, MAC: m1, Dest: here})
	if !h.again {
		t.Error("lost events do not have all read again")
	}
}
