package route

import (
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The bytes are those of the RFCs and of what FRR 8.4 sends.
func TestCommunityBytes(t *testing.T) {
	mac := frame.MAC{2, 0x42, 0, 0, 0, 9}
	target := func(as, n uint32) Community {
		x, err := TargetFrom(as, n)
		if err != nil {
			t.Error(err)
		}
		return Community(x)
	}
	for want, c := range map[string]Community{
		"0002fde800000064": target(65000, 100),
		"0002fde800abcdef": target(65000, 0xabcdef),
		"020200011170000a": target(70000, 10),
		"030c000000000008": Encapsulation(VXLAN),
		"0600000000000005": Mobility(5, false),
		"0600010000000000": Mobility(0, true),
		"06000000ffffffff": Mobility(1<<32-1, false),
		"0603024200000009": RouterMAC(mac),
		"030d000000000000": DefaultGateway(),
		"0608010000000000": NDFlags(true, false),
		"0608030000000000": NDFlags(true, true),
	} {
		if got := hex.EncodeToString(c[:]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if _, err := TargetFrom(70000, 65536); err == nil {
		t.Error("a number of 17 bits beside an AS of four bytes")
	}
}

func TestCommunities(t *testing.T) {
	mac := frame.MAC{2, 0x42, 0, 0, 0, 9}
	a, _ := TargetFrom(65000, 100)
	b := Target{typeIPv4, subTarget, 192, 0, 2, 1, 0, 7}
	origin := Community{0, 3, 0xfd, 0xe8, 0, 0, 0, 1} // route origin
	c := Join(origin, Community(a), Mobility(7, true), Community(b), Encapsulation(VXLAN), RouterMAC(mac), NDFlags(true, false), DefaultGateway())
	var targets []string
	for x := range c.Targets() {
		targets = append(targets, x.String())
	}
	if !slices.Equal(targets, []string{"65000:100", "192.0.2.1:7"}) {
		t.Errorf("targets %v", targets)
	}
	seq, sticky := c.Mobility()
	router, override := c.NDFlags()
	if m, ok := c.RouterMAC(); seq != 7 || !sticky || !router || override || m != mac || !ok || !c.DefaultGateway() || !c.Encapsulated() {
		t.Errorf("%d %v, %v %v, %v %v, %v, %v", seq, sticky, router, override, m, ok, c.DefaultGateway(), c.Encapsulated())
	}
	var none Communities
	seq, sticky = none.Mobility()
	if _, ok := none.RouterMAC(); ok || seq != 0 || sticky || none.DefaultGateway() || !none.Encapsulated() {
		t.Error("nothing is said, and something is read")
	}
	for _, x := range []struct {
		c    Communities
		want bool
	}{{Join(Encapsulation(10)), false}, {Join(Encapsulation(10), Encapsulation(VXLAN)), true}, {Join(Encapsulation(GPE)), false}} {
		if x.c.Encapsulated() != x.want {
			t.Errorf("%x: %v", string(x.c), !x.want)
		}
	}
}

// Derived targets mean their VNI, whatever the AS (FRR), also with the marks of RFC 8365, section 5.1.2.1.
func TestTargetVNI(t *testing.T) {
	for _, c := range []struct {
		as, n uint32
		vni   frame.VNI
		ok    bool
	}{
		{65000, 100, 100, true}, {1, 1<<24 - 1, 1<<24 - 1, true}, {65000, 1<<28 | 5000, 5000, true}, {70000, 300, 300, true},
		{65000, 1 << 24, 0, false}, {65000, 2<<28 | 5, 0, false}, {65000, 1<<31 | 5, 0, false},
	} {
		x := check.Must(TargetFrom(c.as, c.n))(t)
		if vni, ok := x.VNI(); ok != c.ok || ok && vni != c.vni {
			t.Errorf("%v: VNI %d, %v; want %d, %v", x, vni, ok, c.vni, c.ok)
		}
	}
	if _, ok := (Target{typeIPv4, subTarget, 192, 0, 2, 1, 0, 7}).VNI(); ok {
		t.Error("a target with an address has a VNI")
	}
	if s := fmt.Sprint(Target{typeAS4, subTarget, 0, 1, 0x11, 0x70, 0, 10}); s != "70000:10" {
		t.Error(s)
	}
}
