package node

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// What control planes provide is theirs: neither the file nor others remove it, and what contradicts is refused.
func TestProvide(t *testing.T) {
	b := newBench(t)
	file := `{"tunnels": [{"name": "v", "local": "192.0.2.1"}], "ports": [{"name": "p1"}],
		"segments": [{"vni": 10, "tunnel": "v", "members": [{"port": "p1"}]%s}], "vrfs": [{"name": "red"}]}`
	base := parse(t, fmt.Sprintf(file, ""))
	must(t, b.Apply(base))
	l3vni := func(vni frame.VNI) *Config {
		return &Config{
			Segments: []Segment{{VNI: vni, Tunnel: "v", Gateway: &SegmentGateway{VRF: "red", Gateway: Gateway{MAC: frame.MAC{2, 0, 0, 0, 0, byte(vni)}}}}},
			VRFs:     []VRF{{Name: "red"}},
		}
	}
	want := func(what string, vnis ...frame.VNI) {
		t.Helper()
		var got []frame.VNI
		for _, v := range b.Switch().VSIs() {
			got = append(got, v.VNI())
		}
		if !reflect.DeepEqual(got, vnis) {
			t.Errorf("%s: segments %v, want %v", what, got, vnis)
		}
	}
	must(t, b.Provide("evpn", l3vni(900)))
	must(t, b.Provide("ovsdb", &Config{
		Ports:    []Port{{Name: "p2"}},
		Segments: []Segment{{VNI: 10, Members: []Member{{Port: "p2"}}}, {VNI: 20, Members: []Member{{Port: "p2", VLAN: 7}}}},
	}))
	want("two planes", 10, 20, 900)
	if n := len(b.segments[10].vsi.Attachments()); n != 3 {
		t.Errorf("%d members of segment 10, want 3", n)
	}
	if c := b.Config(); !reflect.DeepEqual(c, base) {
		t.Errorf("Config has what others provide: %+v", c)
	}
	must(t, b.Apply(parse(t, fmt.Sprintf(file, `, "maxMACs": 99`)))) // a reload
	must(t, b.Update(func(c *Config) error { c.Segments[0].MaxMACs = 98; return nil }))
	want("a reload", 10, 20, 900)
	must(t, b.Provide("evpn", l3vni(901)))
	want("another segment of one plane", 10, 20, 901)

	for name, c := range map[string]struct {
		do   func() error
		want string
	}{
		"a segment of another":      {func() error { return b.Provide("evpn", l3vni(10)) }, "node: owner evpn: segment 10: is another owner's; only Members, and a Gateway if there is none, can be added"},
		"a port of another":         {func() error { return b.Provide("evpn", &Config{Ports: []Port{{Name: "p2"}}}) }, "ports[2].name"},
		"what the node has":         {func() error { return b.Provide("evpn", &Config{Control: Control{Socket: "/x"}}) }, "node: owner evpn: Provide: only"},
		"the configuration's name":  {func() error { return b.Provide(Owner, nil) }, "the name of a control plane is required"},
		"a file without the tunnel": {func() error { return b.Apply(parse(t, `{"vrfs": [{"name": "red"}]}`)) }, `"v"`},
		"a file with their segment": {func() error {
			return b.Apply(parse(t, strings.Replace(fmt.Sprintf(file, ""), `"vni": 10`, `"vni": 901`, 1)))
		}, "segment 901"},
		"members of what is nowhere": {func() error {
			return b.Provide("other", &Config{Segments: []Segment{{VNI: 10, Members: []Member{{Port: "none"}}}}})
		}, `node: owner other: ports: there is no "none", which owner other has in VNI 10`},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		want(name, 10, 20, 901)
	}
	must(t, b.Provide("evpn", l3vni(20))) // that of ovsdb has members only
	if n := len(b.segments[20].vsi.Attachments()); n != 2 {
		t.Errorf("%d members of segment 20, want 2", n)
	}
	must(t, b.Provide("evpn", nil))
	must(t, b.Provide("evpn", nil))
	want("one is gone", 10, 20)
	gateway := Segment{VNI: 10, Gateway: &SegmentGateway{VRF: "red", Gateway: Gateway{MAC: frame.MAC{2, 0, 0, 0, 0, 9}}}}
	must(t, b.Provide("evpn", &Config{VRFs: []VRF{{Name: "red"}}, Segments: []Segment{gateway}})) // a gateway alone, for the segment of the file
	if s := b.segments[10]; s.iface == nil || s.first != "v" || len(s.vsi.Attachments()) != 3 {
		t.Errorf("a gateway from another owner: %+v", s)
	}
	if err := b.Provide("other", &Config{Segments: []Segment{gateway}}); err == nil || !strings.Contains(err.Error(), "segment 10: is another owner's") {
		t.Errorf("a second gateway: %v", err)
	}
	must(t, b.Provide("evpn", nil))
	want("it is gone", 10, 20)
	must(t, b.Provide("ovsdb", nil))
	want("both are", 10)
	if n := len(b.segments[10].vsi.Attachments()); n != 2 {
		t.Errorf("%d members of segment 10, want 2", n)
	}
	b.Close()
	if err := b.Provide("evpn", nil); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
