package hosted

import (
	"net/netip"
	"testing"
)

// Subnets of one network that are near each other have different metrics, in the range that the documentation says.
func TestMetric(t *testing.T) {
	for prefix, want := range map[string]int{
		"10.0.0.0/24": 1, "10.0.1.0/24": 2, "10.3.2.0/24": 1 + 0x302, "10.3.255.0/24": 1024, "10.4.0.0/24": 1, "10.3.0.128/25": 1 + 0x601&1023,
		"10.3.0.4/30": 2, "0.0.0.0/0": 1, "255.255.255.255/32": 1024, "fc00:3::/64": 0,
	} {
		if got := metric(netip.MustParsePrefix(prefix)); got != want {
			t.Errorf("%s: %d, want %d", prefix, got, want)
		}
	}
	seen := map[int]int{}
	for i := range 5000 {
		seen[metric(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(100 + i>>8), byte(i), 0}), 24))]++
	}
	for m, n := range seen {
		if m < 1 || m > 1024 || n > 5 {
			t.Errorf("metric %d: %d of 5,000 subnets", m, n)
		}
	}
}
