package underlaytest

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A Veth is two hosts and a veth between them. Host A has the addresses .100, B .2; AF_PACKET
// underlays of the tests have .1, which nobody else has.
type Veth struct {
	T    testing.TB
	A, B *netns.Host
	IP6  bool
}

// NewVeth makes one, for one address family.
func NewVeth(t testing.TB, ip6 bool) *Veth {
	n := netns.New(t)
	v := &Veth{T: t, A: n.Host("a"), B: n.Host("b"), IP6: ip6}
	n.Link(v.A, "10.9.0.100/24,fd09::100/64", v.B, "10.9.0.2/24,fd09::2/64")
	v.A.Ready()
	v.B.Ready()
	return v
}

// BothFamilies runs a test over each address family.
func BothFamilies(t *testing.T, f func(t *testing.T, v *Veth)) {
	for _, ip6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[ip6], func(t *testing.T) { f(t, NewVeth(t, ip6)) })
	}
}

// At returns the address of host n at a port.
func (v *Veth) At(n int, port uint16) netip.AddrPort {
	a := netip.AddrFrom4([4]byte{10, 9, 0, byte(n)})
	if v.IP6 {
		a = netip.MustParseAddr(fmt.Sprintf("fd09::%d", n))
	}
	return netip.AddrPortFrom(a, port)
}

// End returns the endpoint of host n at port 4789.
func (v *Veth) End(n int) frame.Endpoint { return Endpoint(v.T, v.At(n, 4789)) }

// Mine gives host A one more address.
func (v *Veth) Mine(n int) netip.AddrPort {
	a := v.At(n, 4789)
	args := []string{"addr", "add", a.Addr().String() + "/24", "dev", "eth0"}
	if v.IP6 {
		args = []string{"addr", "add", a.Addr().String() + "/64", "dev", "eth0", "nodad"}
	}
	v.A.IP(args...)
	return a
}

// Group returns a multicast group.
func (v *Veth) Group(n int) netip.Addr {
	if v.IP6 {
		return netip.MustParseAddr(fmt.Sprintf("ff05::%d", n))
	}
	return netip.AddrFrom4([4]byte{239, 1, 1, byte(n)})
}
