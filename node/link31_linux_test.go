package node

import (
	"strings"
	"testing"
)

// Links of two addresses (RFC 3021, RFC 6164), as routers have them: both addresses are hosts, and a router behind such a link is a next
// hop. Behind a TUN, the other end of the link is reached through a route.
func TestLinksOfTwo(t *testing.T) {
	l := newLab(t)
	s := l.start("node", "192.0.2.1", parse(t, `{
	  "ports": [{"name": "tap1"}, {"name": "tap2"}, {"name": "tun1", "type": "tun"}],
	  "vrfs": [{"name": "v", "routes": [
	    {"prefix": "10.9.0.0/24", "via": [{"segment": 10, "ip": "10.1.0.1"}]}, {"prefix": "fd09::/64", "via": [{"segment": 10, "ip": "fd01::1"}]},
	    {"prefix": "10.3.0.1/32", "via": [{"segment": 30}]}, {"prefix": "fd03::1/128", "via": [{"segment": 30}]}]}],
	  "segments": [
	    {"vni": 10, "members": [{"port": "tap1"}], "gateway": {"vrf": "v", "addresses": ["10.1.0.0/31", "fd01::/127"], "mac": "02:00:00:00:10:01"}},
	    {"vni": 20, "members": [{"port": "tap2"}], "gateway": {"vrf": "v", "addresses": ["10.2.0.1/31", "fd02::1/127"], "mac": "02:00:00:00:20:01"}},
	    {"vni": 30, "members": [{"port": "tun1"}], "gateway": {"vrf": "v", "addresses": ["10.3.0.0/32", "fd03::/128"]}}]}`))
	one := s.guest("tap1", "10.1.0.1/31,fd01::1/127", "10.1.0.0,fd01::")
	two := s.guest("tap2", "10.2.0.0/31,fd02::/127", "10.2.0.1,fd02::1")
	three := s.guest("tun1", "10.3.0.1/32,fd03::1/128", "")
	three.IP("route", "add", "default", "dev", "tun1")
	three.IP("-6", "route", "add", "default", "dev", "tun1")
	one.Addr("lo", "10.9.0.1/32,fd09::1/128")
	for _, to := range []string{"10.2.0.0", "fd02::", "10.2.0.1", "fd02::1", "10.1.0.0", "fd01::", "10.3.0.1", "fd03::1", "10.3.0.0", "fd03::"} {
		wantPing(t, one, to, true)
	}
	for _, to := range []string{"10.9.0.1", "fd09::1", "10.1.0.1", "fd01::1"} {
		wantPing(t, two, to, true)
		wantPing(t, three, to, true)
	}
	for text, want := range map[string]string{
		`{"prefix": "10.8.0.0/24", "via": [{"segment": 10, "ip": "10.1.0.2"}]}`: "is in none of the networks of the interface",
		`{"prefix": "10.8.0.0/24", "via": [{"segment": 10, "ip": "10.1.0.0"}]}`: "is an address of the interface itself",
	} {
		_, err := Parse([]byte(`{"ports": [{"name": "tap1"}], "vrfs": [{"name": "v", "routes": [` + text + `]}],
		  "segments": [{"vni": 10, "members": [{"port": "tap1"}], "gateway": {"vrf": "v", "addresses": ["10.1.0.0/31"], "mac": "02:00:00:00:10:01"}}]}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
