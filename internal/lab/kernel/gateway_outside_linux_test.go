package kernel

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A gateway with a TUN device as its other side: hosts of the overlay reach a network
// outside and are reached from there, by path MTU or by a clamped MSS.
//
//	VM1 (9000) -- A === B: gateway -- TUN (1400) -- outside, 198.51.100.1
func TestGatewayOutside(t *testing.T) {
	f := newFabric(t, 2)
	a, b := f.leaves[0], f.leaves[1]
	f.mesh(10, a, b)
	vm := a.host(10, 10, 1, 9000)
	in := b.gateway("red", 10, 10, false)
	out := f.n.Host("outside")
	const vni = frame.VNI(60)
	b.must(b.Update(func(c *node.Config) error {
		c.Ports = append(c.Ports, node.Port{Name: "tun0", Type: node.PortTUN, DeviceConfig: port.DeviceConfig{MTU: 1400, Namespace: out.NS}})
		c.Segments = append(c.Segments, node.Segment{VNI: vni, Members: []node.Member{{Port: "tun0"}}, Gateway: &node.SegmentGateway{VRF: "red"}})
		for _, p := range []string{"0.0.0.0/0", "::/0"} {
			c.VRFs[0].Routes = append(c.VRFs[0].Routes, node.Route{Prefix: netip.MustParsePrefix(p), Via: []node.Hop{{Segment: vni}}})
		}
		return nil
	}))
	out.Addr("tun0", "198.51.100.1/32,2001:db8::1/128")
	out.Route("10.0.10.0/24", "dev", "tun0", "src", "198.51.100.1")
	out.IP("-6", "route", "add", "fd00:10::/64", "dev", "tun0", "src", "2001:db8::1")
	for _, c := range []struct{ outside, inside, told string }{
		{"198.51.100.1", in4(10, 1), "Frag needed and DF set (mtu = 1400)"}, {"2001:db8::1", in6(10, 1), "Packet too big: mtu=1400"},
	} {
		wantTTL(t, vm, c.outside, 63)
		wantTTL(t, out, c.inside, 63)
		got := out.Traceroute(c.inside)
		check.True(t, len(got) == 2 && got[1] == c.inside, "traceroute from outside: %v", got)
		text, _ := vm.Try(t.Context(), "ping", "-n", "-M", "do", "-c", "1", "-W", "2", "-s", "1390", c.outside)
		check.True(t, strings.Contains(text, c.told), "no %q in\n%s", c.told, text)
		tcp := vm.IPerf(out, c.outside, "-t", "1")
		check.True(t, tcp.BitsPerSecond > 5e6, "TCP from inside: %+v", tcp)
		tcp = out.IPerf(vm, c.inside, "-t", "1")
		check.True(t, tcp.BitsPerSecond > 5e6, "TCP from outside: %+v", tcp)
	}
	st := in.Stats()
	check.True(t, st.Routed4 != 0 && st.Routed6 != 0, "%+v", st)

	// Where errors get lost, the clamp says in time what fits.
	clamp := check.Must(l3.NewMSSClamp(1400))(t)
	for _, vni := range []frame.VNI{10, vni} {
		vsi, err := b.Switch().VSI(vni, nil)
		b.must(err)
		c := vsi.Config()
		c.Slots.Ingress, c.Slots.TooBig = clamp, vswitch.NoTooBig{}
		b.must(vsi.Configure(c))
	}
	vm.IP("route", "flush", "cache")
	syn := out.Capture("tun0", "tcp[tcpflags] & tcp-syn != 0")
	got := vm.IPerf(out, "198.51.100.1", "-t", "1")
	check.True(t, got.BitsPerSecond > 5e6, "TCP with a clamped MSS: %+v", got)
	for _, p := range syn.Stop() {
		mss := int(p.Data[20+22])<<8 | int(p.Data[20+23])
		check.True(t, mss <= 1360, "MSS %d", mss)
	}
	check.True(t, clamp.Clamped() != 0, "nothing clamped")
}
