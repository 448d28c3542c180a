package metrics

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/snoop"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestZero(t *testing.T) {
	for _, cfg := range []*Config{nil, {}} {
		if f := gather(t, New(cfg)); len(f) != 0 {
			t.Errorf("%d families of %v", len(f), cfg)
		}
	}
	nothing := func() Sources {
		return Sources{
			Snoopers: map[frame.VNI]*snoop.Snooper{1: nil},
			VTEPs:    map[string]*vtep.VTEP{"a": nil}, Underlays: map[string]Underlay{"a": nil, "b": (*underlay.UDP)(nil)},
			Neighbours: map[frame.VNI]*arp.Responder{1: nil}, Interfaces: map[frame.VNI]*l3.Interface{1: nil},
			Packets: map[string]*port.Packet{"a": nil},
			Buffers: map[string]*port.Buffered{"a": nil}, Captures: map[string]*capture.Capture{"a": nil},
			Policies: map[string]*policy.Policy{"a": nil}, Guards: map[frame.VNI]map[string]*policy.Guard{1: {"a": nil}},
		}
	}
	if f := gather(t, New(&Config{Sources: nothing})); len(f) != 0 {
		t.Errorf("%d families of nothing", len(f))
	}
}

// Names that are not unique, or not UTF-8, do not spoil a scrape.
func TestNames(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		n := f.Node("10.0.0.1")
		for _, name := range []string{"", "", "a\xff", "a\xfe", "a\"\n"} {
			must(n.Segment(1).Attach(port.NewPipe(&port.PipeConfig{Name: name}), 0))(t)
		}
		peer := netip.MustParseAddrPort("10.0.0.2:4789")
		must(n.VTEP.AddPeer(peer))(t)
		must(n.VTEP.NextHop(peer, 7))(t)
		must(n.VTEP.NextHop(peer, 8))(t)
		must(n.VTEP.Group(1, 2))(t) // is no peer
		all := gather(t, New(&Config{Switch: n.Switch, Sources: func() Sources {
			return Sources{VTEPs: map[string]*vtep.VTEP{"v\xff": n.VTEP}}
		}}))
		var ports []string
		for _, m := range all["vxswitch_port_receive_frames_total"].Metric {
			ports = append(ports, m.Label[1].GetValue())
		}
		slices.Sort(ports)
		if want := []string{"\"a\\xfe\"", "\"a\\xff\"", "a\"\n", "pipe", "pipe", "switch"}; !slices.Equal(ports, want) {
			t.Errorf("ports %q, want %q", ports, want)
		}
		if m := all["vxswitch_vtep_peer_mtu_bytes"].Metric; len(m) != 3 {
			t.Errorf("%d peers, want 3: %v", len(m), m)
		}
	})
}

func TestNoPeers(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a, b := f.Node("10.0.0.1"), f.Node("10.0.0.2")
		f.Mesh(100, a, b)
		a.Host(100).Send(mem.ARPRequest(a.Host(100), netip.MustParseAddr("192.168.0.9")))
		for name, m := range gather(t, New(&Config{NoPeers: true, Sources: func() Sources {
			return Sources{VTEPs: map[string]*vtep.VTEP{"v": a.VTEP}}
		}})) {
			switch {
			case strings.HasPrefix(name, "vxswitch_vtep_peer_"):
				t.Errorf("%s is there", name)
			case name == "vxswitch_vtep_transmit_frames_total" && value(m.Metric[0]) != 1:
				t.Errorf("%s is %v", name, m.Metric)
			}
		}
	})
}

// What a gateway and its neighbours do is in the scrape; what is closed or left out is not.
func TestNetworks(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		n := must(node.New(nil))(t)
		seg := must(n.Segment(100, &node.Segment{Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}}}))(t)
		must(0, seg.Gateway("tenant", node.Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.0.254/16")}}))(t)
		go n.Run(context.Background())
		defer n.Close()
		p := port.NewPipe(nil)
		must(0, seg.Add(p, nil))(t)
		c := New(OfNode(n))

		h := &mem.Host{MAC: frame.MAC{2, 0, 0, 0, 0, 1}, IP: netip.MustParseAddr("192.168.0.1")}
		for range 2 {
			must(0, p.Send(mem.ARPRequest(h, netip.MustParseAddr("192.168.0.254"))))(t)
			f.Settle()
		}
		all := gather(t, c)
		for name, want := range map[string]map[string]float64{
			"vxswitch_neighbour_messages_total":         {"arp 100": 2, "nd 100": 0},
			"vxswitch_neighbour_outcomes_total":         {"answered-gateway arp 100": 2},
			"vxswitch_neighbour_entries":                {"set 100": 0, "snooped 100": 1},
			"vxswitch_neighbour_learned_total":          {"100": 1},
			"vxswitch_gateway_routed_packets_total":     {"ipv4 100 tenant": 0, "ipv6 100 tenant": 0},
			"vxswitch_gateway_waiting_next_hops":        {"100 tenant": 0},
			"vxswitch_fdb_learned_entries":              {"100": 1},
			"vxswitch_vsi_flooded_frames_total":         {"broadcast 100": 0, "multicast 100": 0, "unknown 100": 0},
			"vxswitch_gateway_unresolved_packets_total": {"100 tenant": 0},
			"vxswitch_port_up":                          {"pipe": 1},
		} {
			for _, m := range all[name].Metric {
				var key []string
				for _, l := range m.Label {
					key = append(key, l.GetValue())
				}
				k := strings.Join(key, " ")
				if v, ok := want[k]; !ok || value(m) != v {
					t.Errorf("%s{%s} is %v, want %v", name, k, value(m), want)
				}
			}
			if len(all[name].Metric) != len(want) {
				t.Errorf("%s has %d samples, want %d", name, len(all[name].Metric), len(want))
			}
		}
		if m := all["vxswitch_toobig_frames_total"].Metric; len(m) != 12 {
			t.Errorf("%d outcomes of TooBig, want 12 of the switch's own", len(m))
		}

		p.Close() // its device is gone
		time.Sleep(time.Second)
		f.Settle()
		if m := gather(t, c)["vxswitch_port_up"].Metric; len(m) != 1 || value(m[0]) != 0 {
			t.Errorf("a port that is down: %v", m)
		}
		must(0, n.Apply(&node.Config{}))(t)
		for name := range gather(t, c) {
			if strings.HasPrefix(name, "vxswitch_gateway_") || strings.HasPrefix(name, "vxswitch_neighbour_") {
				t.Errorf("%s is still there", name)
			}
		}
	})
}
