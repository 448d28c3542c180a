package storetest

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/flannel"
)

const dualJSON = `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00::/62", "Backend": {"Type": "vxlan"}}` // 3 IPv6 subnets

func dualRequest(i int) flannel.Request {
	r := request(fmt.Sprintf("1.2.3.%d", i))
	r.IPv6 = flannel.End{PublicIP: netip.MustParseAddr(fmt.Sprintf("fd00::%d", i)), VNI: 1}
	return r
}

// Subnets of both families are one key, but must be free each.
func dual(t tester) {
	n := t.read(dualJSON)
	results := make(chan *flannel.Own, 3)
	for i := range 3 {
		s := t.store()
		go func() {
			for {
				own, err := s.Acquire(t.Context(), n, dualRequest(i+1))
				if !errors.Is(err, flannel.ErrTaken) && !errors.Is(err, flannel.ErrFull) { // another has one it will not keep
					if err != nil {
						t.Error(err)
					}
					results <- own
					return
				}
			}
		}()
	}
	seen := map[netip.Prefix]bool{}
	for range 3 {
		own := <-results
		if own == nil {
			continue
		}
		if !n.Suits(own.Subnet) || !own.IPv4.MAC.IsHost() || !own.IPv6.MAC.IsHost() {
			t.Errorf("%+v", own.Lease)
		}
		seen[own.Subnet.IPv4], seen[own.Subnet.IPv6] = true, true
	}
	if len(seen) != 6 {
		t.Errorf("subnets %v", seen)
	}
	s := t.store()
	_, err := s.Acquire(t.Context(), n, dualRequest(4))
	t.is(err, flannel.ErrFull)
	first := t.acquire(s, n, dualRequest(1))
	if len(t.keys()) != 3 {
		t.Errorf("%v after %v came again", t.keys(), first.Subnet)
	}
	r := dualRequest(1)
	r.OneMAC = true
	if own := t.acquire(s, n, r); own.IPv6.MAC != first.IPv4.MAC || own.IPv4.MAC != first.IPv4.MAC {
		t.Errorf("%+v with one MAC, %+v before", own.Lease, first.Lease)
	}
}

func six(t tester) {
	n := t.read(`{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fc00::/48", "Backend": {"Type": "vxlan"}}`)
	r, r2 := dualRequest(1), dualRequest(2)
	r.IPv4, r2.IPv4 = flannel.End{}, flannel.End{}
	own, other := t.acquire(t.store(), n, r), t.acquire(t.store(), n, r2)
	if own.Subnet.IPv4.IsValid() || !n.Suits(own.Subnet) || own.Subnet == other.Subnet {
		t.Errorf("got %v and %v", own.Subnet, other.Subnet)
	}
	if again := t.acquire(t.store(), n, r); again.Subnet != own.Subnet || again.IPv6.MAC != own.IPv6.MAC {
		t.Errorf("got %+v, was %+v", again.Lease, own.Lease)
	}
}
