package hostaddr_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

func TestCheck(t *testing.T) {
	for _, s := range []string{
		"192.0.2.1", "10.0.0.255", "10.0.0.0", "127.0.0.1", "240.0.0.1", "255.255.255.254", "1.0.0.0", "223.255.255.255",
		"::1", "2001:db8::", "fe80::1%eth0", "::ffff:192.0.2.1", "fd00::ffff:ffff:ffff:ffff",
	} {
		if err := hostaddr.Check(netip.MustParseAddr(s)); err != nil {
			t.Errorf("%s %v", s, err)
		}
	}
	for _, s := range []string{
		"0.0.0.0", "0.0.0.1", "0.255.255.255", "224.0.0.1", "239.255.255.255", "255.255.255.255",
		"::", "ff02::1", "ff05::1%eth0", "::ffff:255.255.255.255", "::ffff:0.1.2.3", "::ffff:224.0.0.1",
	} {
		if hostaddr.Check(netip.MustParseAddr(s)) == nil {
			t.Errorf("%s: allowed", s)
		}
	}
	if hostaddr.Check(netip.Addr{}) == nil {
		t.Error("none: allowed")
	}
}

// What a look at bytes says, addresses of packets have.
func TestBytes(t *testing.T) {
	for a, want := range map[string]bool{
		"192.0.2.1": true, "223.255.255.255": true, "0.1.2.3": false, "127.0.0.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"2001:db8::1": true, "::2": true, "fe80::1": true, "::": false, "::1": false, "ff02::1": false,
	} {
		x := netip.MustParseAddr(a)
		if got := x.Is4() && hostaddr.Is4(x.As4()) || x.Is6() && hostaddr.Is6(x.As16()); got != want {
			t.Errorf("%s: %v", a, got)
		}
	}
}

func TestNeighbour(t *testing.T) {
	for _, s := range []string{"192.0.2.1", "169.254.0.1", "fe80::1", "2001:db8::1"} {
		if err := hostaddr.Neighbour(netip.MustParseAddr(s)); err != nil {
			t.Errorf("%s %v", s, err)
		}
	}
	for _, s := range []string{"127.0.0.1", "::1", "fe80::1%eth0", "::ffff:192.0.2.1", "224.0.0.1", "0.0.0.0", "ff02::1"} {
		if hostaddr.Neighbour(netip.MustParseAddr(s)) == nil {
			t.Errorf("%s: allowed", s)
		}
	}
}

func TestIn(t *testing.T) {
	for _, c := range []struct {
		prefix, addr string
		ok           bool
	}{
		{"10.0.0.0/24", "10.0.0.1", true},
		{"10.0.0.0/24", "10.0.0.254", true},
		{"10.0.0.0/24", "10.0.0.0", false},
		{"10.0.0.0/24", "10.0.0.255", false},
		{"10.0.0.7/24", "10.0.0.255", false},
		{"10.0.0.0/24", "::ffff:10.0.0.255", false},
		{"10.0.0.0/23", "10.0.0.255", true},
		{"10.0.0.0/24", "10.0.1.0", true}, // of another network
		{"10.0.0.0/30", "10.0.0.3", false},
		{"10.0.0.0/31", "10.0.0.0", true},
		{"10.0.0.0/31", "10.0.0.1", true},
		{"10.0.0.0/32", "10.0.0.0", true},
		{"240.0.0.0/4", "255.255.255.255", false},
		{"0.0.0.0/0", "192.0.2.1", true},
		{"2001:db8::/64", "2001:db8::", false},
		{"2001:db8::/64", "2001:db8::ffff:ffff:ffff:ffff", true},
		{"2001:db8::/126", "2001:db8::", false},
		{"2001:db8::/127", "2001:db8::", true},
		{"2001:db8::/128", "2001:db8::", true},
		{"fe80::/64", "fe80::%eth0", false},
		{"fe80::/64", "fe80::1%eth0", true},
		{"10.0.0.0/24", "2001:db8::1", true},
	} {
		if err := hostaddr.In(netip.MustParsePrefix(c.prefix), netip.MustParseAddr(c.addr)); (err == nil) != c.ok {
			t.Errorf("%s in %s: %v", c.addr, c.prefix, err)
		}
	}
	if err := hostaddr.In(netip.Prefix{}, netip.MustParseAddr("10.0.0.0")); err != nil {
		t.Errorf("in no network: %v", err)
	}
}

// Networks inside those that are not routed are refused; those that contain them are not.
func TestRouted(t *testing.T) {
	for p, want := range map[string]bool{
		"127.0.0.0/8": false, "127.255.255.255/32": false, "126.0.0.0/7": true, "126.0.0.0/8": true, "128.0.0.0/8": true, "0.0.0.0/0": true,
		"224.0.0.0/4": false, "239.0.0.0/8": false, "224.0.0.0/3": true, "::1/128": false, "::/127": true, "::/0": true, "ff00::/8": false,
		"ff02::1/128": false, "fe00::/7": true, "fe80::/10": true,
	} {
		if err := hostaddr.Routed(netip.MustParsePrefix(p)); (err == nil) != want {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestListeners(t *testing.T) {
	for list, want := range map[string]string{
		"192.0.2.1 192.0.2.2 2001:db8::1": "",
		"0.0.0.0 ::":                      "",
		"0.0.0.0 2001:db8::1":             "",
		"192.0.2.1 192.0.2.1":             "1: it is in the list twice",
		"192.0.2.1 0.0.0.0":               "0: 0.0.0.0 or :: in the list has all addresses of its family; must be alone then",
		":: 224.0.0.1":                    "1: must be an address of the host, or 0.0.0.0 or :: for all",
	} {
		var addrs []netip.Addr
		for _, s := range strings.Fields(list) {
			addrs = append(addrs, netip.MustParseAddr(s))
		}
		var got []string
		for i, err := range hostaddr.Listeners(addrs) {
			got = append(got, fmt.Sprint(i, ": ", err))
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}
