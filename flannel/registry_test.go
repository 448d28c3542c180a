package flannel

import (
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A node that was not told that its key is written, or ended before it had looked, may find later that an older lease has its IPv6
// subnet. It keeps what is its own.
func TestHalfTaken(t *testing.T) {
	m := NewMemory(`{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`)
	defer m.Close()
	ours := Attrs{Type: "vxlan", IPv4: end("192.0.2.1", 1), IPv6: end("2001:db8::1", 1)}
	m.Put("10.3.5.0-24&fc00:3:0:5::-64", (&Attrs{Type: "vxlan", IPv4: end("192.0.2.2", 2), IPv6: end("2001:db8::2", 2)}).Value(), time.Hour)
	m.Put("10.3.6.0-24&fc00:3:0:5::-64", ours.Value(), time.Hour)
	s := &Registry{KV: m.KV()}
	n, err := s.Network(t.Context())
	check.OK(t, err)
	var before Subnet
	for range 2 {
		own, err := s.Acquire(t.Context(), n, Request{Attrs: ours})
		check.OK(t, err)
		if four, six := own.Subnet.IPv4.String(), own.Subnet.IPv6.String(); four != "10.3.6.0/24" || six == "fc00:3:0:5::/64" {
			t.Errorf("%s, %s", four, six)
		}
		if before.IsValid() && own.Subnet != before {
			t.Errorf("%v, before %v", own.Subnet, before)
		}
		before = own.Subnet
		if list, err := s.KV.List(t.Context()); err != nil || len(list) != 2 || list[1].Key != own.Subnet.Key() {
			t.Errorf("%v, %v", list, err)
		}
	}

	// A reservation is what an operator wants.
	const reserved = "10.3.8.0-24&fc00:3:0:5::-64"
	ours.IPv4.PublicIP = ours.IPv4.PublicIP.Next().Next()
	m.Put(reserved, ours.Value(), 0)
	if own, err := s.Acquire(t.Context(), n, Request{Attrs: ours}); err != nil || own.Subnet.Key() != reserved {
		t.Errorf("%v, %v", own, err)
	}
}
