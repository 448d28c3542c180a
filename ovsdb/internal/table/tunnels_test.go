package table

import (
	"maps"
	"net/netip"
	"testing"
)

// Each VTEP has a row of Tunnel, by the locator without a tunnel_key if there is one. bfd_status is there while the controller asks for
// it, and says which of its parameters have no effect.
func TestWriteTunnels(t *testing.T) {
	var d Database
	fill(t, &d, base)
	fill(t, &d, `Physical_Locator k2 {"dst_ip": "192.0.2.2", "encapsulation_type": "vxlan_over_ipv4", "tunnel_key": 9}`)
	two, three := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	st := &State{BFD: map[string]string{"bfd_dst_ip": "127.0.0.1"}}
	write := func(want map[string]string) {
		t.Helper()
		carry(t, &d, d.Write(us, st))
		if again := d.Write(us, st); len(again) > 0 {
			t.Errorf("again %v", again)
		}
		got := map[string]string{}
		for _, id := range d.Row(PhysicalSwitch, "s").Refs("tunnels") {
			r := d.Row(Tunnels, id)
			if local := d.Row(Locator, r.ref("local")).text("dst_ip"); local != "192.0.2.1" {
				t.Errorf("local %s", local)
			}
			got[r.ref("remote")] = r.words("bfd_status")["state"] + r.words("bfd_status")["info"]
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	up := map[string]string{"state": "up"}
	write(map[string]string{})
	st.Tunnels = map[netip.Addr]map[string]string{two: up}
	write(map[string]string{"l2": ""})
	st.Tunnels[three] = up
	write(map[string]string{"l2": "", "l3": ""})
	id := d.Row(PhysicalSwitch, "s").Refs("tunnels")[0]
	row := d.Row(Tunnels, id)
	row["bfd_params"] = []any{"map", []any{[]any{"enable", "true"}, []any{"cpath_down", "false"}}}
	write(map[string]string{"l2": "up", "l3": ""})
	row["bfd_params"] = []any{"map", []any{[]any{"enable", "true"}, []any{"min_rx", "50"}}}
	row["bfd_config_remote"] = []any{"map", []any{[]any{"bfd_dst_ip", "169.254.1.1"}, []any{"bfd_dst_mac", "00:23:20:00:00:01"}}}
	write(map[string]string{"l2": "upwithout effect: bfd_dst_ip, bfd_dst_mac, min_rx", "l3": ""})
	row["bfd_params"] = []any{"map", []any{[]any{"enable", "false"}}}
	write(map[string]string{"l2": "", "l3": ""})
	st.Tunnels = map[netip.Addr]map[string]string{three: nil}
	write(map[string]string{"l3": ""})
	st.Tunnels = nil
	write(map[string]string{})
}
