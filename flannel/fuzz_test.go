package flannel

import (
	"encoding/json"
	"net/netip"
	"testing"
)

// What is accepted is written in one way, and read again it is the same.
func FuzzLease(f *testing.F) {
	f.Add("10.230.33.0-24", []byte(`{"PublicIP":"10.9.0.1","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"}}`))
	f.Add("10.230.33.0-24&fc00::-64", []byte(`{"PublicIP":"10.9.0.1","PublicIPv6":"fd00::1","BackendType":"host-gw"}`))
	f.Add("0.0.0.0-0&fc00::-64", []byte(`{"PublicIP":"0.0.0.0","PublicIPv6":"fd00::1","BackendType":"wireguard","BackendData":{"PublicKey":"x"}}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		l, err := ParseLease(key, value)
		if err != nil {
			if _, ok := err.(*Refusal); !ok || l != (Lease{}) {
				t.Fatalf("%v with %T", l, err)
			}
			return
		}
		if l.Subnet.Key() != key {
			t.Fatalf("%q is written %q", key, l.Subnet.Key())
		}
		again, err := ParseLease(l.Subnet.Key(), l.Value())
		if err != nil || again != l {
			t.Fatalf("%+v, read again %+v, %v", l, again, err)
		}
	})
}

func FuzzNetwork(f *testing.F) {
	f.Add([]byte(`{"Network": "10.3.0.0/16", "SubnetMin": "10.3.5.0", "SubnetMax": "10.3.8.0", "SubnetLen": 28, "Backend": {"Type": "vxlan", "VNI": 7}}`))
	f.Add([]byte(`{"EnableIPv6": true, "IPv6Network": "fc00::/48", "IPv6SubnetLen": 124, "enableIPv4": false, "Backend": {"Type": "host-gw"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := ParseNetwork(text)
		if err != nil {
			return
		}
		for _, r := range []Range{n.IPv4, n.IPv6} {
			if r.IsValid() && !(r.Suits(r.First) && r.Suits(r.Last) && r.Network.Overlaps(r.First) && r.Network.Overlaps(r.Last)) {
				t.Fatalf("%+v", r)
			}
		}
		j, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseNetwork(j); err != nil || again.IPv4 != n.IPv4 || again.IPv6 != n.IPv6 || again.Backend.Type != n.Backend.Type {
			t.Fatalf("%s: read again %+v, %v", j, again, err)
		}
	})
}

// Free yields what a look at each subnet finds.
func FuzzFree(f *testing.F) {
	f.Add([]byte{1, 24, 5, 22, 40, 30})
	r := Range{prefixes("10.3.0.0/16")[0], prefixes("10.3.1.0/24")[0], prefixes("10.3.40.0/24")[0]}
	f.Fuzz(func(t *testing.T, b []byte) {
		var taken = prefixes("192.0.2.0/24")
		for ; len(b) >= 2 && len(taken) < 100; b = b[2:] {
			p := prefixes("10.3.0.0/16")[0]
			a := p.Addr().As4()
			a[2] = b[0]
			if n := int(b[1]); n <= 32 {
				taken = append(taken, netip.PrefixFrom(netip.AddrFrom4(a), n))
			}
		}
		free := map[string]bool{}
		for p := range r.Free(taken) {
			free[p.String()] = true
		}
		for p, ok := r.First, true; ok && r.Suits(p); p, ok = next(p) {
			want := true
			for _, x := range taken {
				want = want && !x.Overlaps(p)
			}
			if free[p.String()] != want {
				t.Fatalf("%v beside %v: free %v", p, taken, !want)
			}
			delete(free, p.String())
		}
		if len(free) != 0 {
			t.Fatalf("%v are not of the range", free)
		}
	})
}
