package kernel

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
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
	tun, err := port.OpenTUN("tun0", &port.DeviceConfig{MTU: 1400, Namespace: out.NS})
	if err != nil {
		t.Fatal(err)
	}
	const vni = frame.VNI(60)
	vsi := b.vsi(vni, nil)
	at, err := vsi.Attach(tun, 0)
	if err != nil {
		t.Fatal(err)
	}
	red := b.gw.VRF("red")
	i, err := red.NewInterface(l3.InterfaceConfig{VNI: vni, Port: at.Dest(0), Send: vsi.Send})
	if err != nil {
		t.Fatal(err)
	}
	if err := vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: i, TooBig: i.TooBig()}}); err != nil {
		t.Fatal(err)
	}
	var routes []l3.Route
	for _, p := range []string{"0.0.0.0/0", "::/0"} {
		routes = append(routes, l3.Route{Prefix: netip.MustParsePrefix(p), Via: []l3.NextHop{{Interface: i}}})
	}
	if err := red.Add(routes...); err != nil {
		t.Fatal(err)
	}
	out.Addr("tun0", "198.51.100.1/32,2001:db8::1/128")
	out.Route("10.0.10.0/24", "dev", "tun0", "src", "198.51.100.1")
	out.IP("-6", "route", "add", "fd00:10::/64", "dev", "tun0", "src", "2001:db8::1")
	for _, c := range []struct{ outside, inside, told string }{
		{"198.51.100.1", in4(10, 1), "Frag needed and DF set (mtu = 1400)"}, {"2001:db8::1", in6(10, 1), "Packet too big: mtu=1400"},
	} {
		if ttl := first(t, vm, c.outside); ttl != 63 {
			t.Errorf("to %s: TTL %d", c.outside, ttl)
		}
		if ttl := first(t, out, c.inside); ttl != 63 {
			t.Errorf("to %s: TTL %d", c.inside, ttl)
		}
		if got := traced(t, out, c.inside); len(got) != 2 || got[1] != c.inside {
			t.Errorf("traceroute from outside: %v", got)
		}
		text, _ := vm.Try(t.Context(), "ping", "-n", "-M", "do", "-c", "1", "-W", "2", "-s", "1390", c.outside)
		if !strings.Contains(text, c.told) {
			t.Errorf("no %q in\n%s", c.told, text)
		}
		if got := vm.IPerf(out, c.outside, "-t", "1"); got.BitsPerSecond <= 1e7 {
			t.Errorf("TCP from inside: %+v", got)
		}
		if got := out.IPerf(vm, c.inside, "-t", "1"); got.BitsPerSecond <= 1e7 {
			t.Errorf("TCP from outside: %+v", got)
		}
	}
	if st := in.Stats(); st.Routed4 == 0 || st.Routed6 == 0 {
		t.Errorf("%+v", st)
	}

	// Where errors get lost, the clamp says in time what fits.
	clamp, err := l3.NewMSSClamp(1400)
	if err != nil {
		t.Fatal(err)
	}
	if err := vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Ingress: clamp, Gateway: i}}); err != nil {
		t.Fatal(err)
	}
	_, far := b.segment(10)
	if err := far.Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: clamp}}); err != nil {
		t.Fatal(err)
	}
	vm.IP("route", "flush", "cache")
	syn := out.Capture("tun0", "tcp[tcpflags] & tcp-syn != 0")
	if got := vm.IPerf(out, "198.51.100.1", "-t", "1"); got.BitsPerSecond <= 1e7 {
		t.Errorf("TCP with a clamped MSS: %+v", got)
	}
	for _, p := range syn.Stop() {
		if mss := int(p.Data[20+22])<<8 | int(p.Data[20+23]); mss > 1360 {
			t.Errorf("MSS %d", mss)
		}
	}
	if clamp.Clamped() == 0 {
		t.Error("nothing clamped")
	}
}
