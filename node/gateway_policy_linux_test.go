package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// twoTenants are two VRFs with the same addresses, each with two segments; a and b are in one segment, c in the other. The gateways
// of red have the policy between.
func twoTenants(policy string) string {
	var ports, segments []string
	for i, vrf := range []string{"red", "blue"} {
		for _, host := range []string{"a", "b", "c"} {
			ports = append(ports, fmt.Sprintf(`{"name": "%s-%s"}`, vrf, host))
		}
		with := ""
		if vrf == "red" {
			with = policy
		}
		gateway := func(net, mac int) string {
			return fmt.Sprintf(`"gateway": {"vrf": "%s", "addresses": ["10.0.%d.254/24", "fd00:%d::fe/64"], "mac": "02:00:00:00:%02x:%02x"%s}`, vrf, net, net, i, mac, with)
		}
		segments = append(segments, fmt.Sprintf(`{"vni": %d, "members": [{"port": "%s-a"}, {"port": "%s-b"}], %s}`, 10+100*i, vrf, vrf, gateway(10, 1)),
			fmt.Sprintf(`{"vni": %d, "members": [{"port": "%s-c"}], %s}`, 20+100*i, vrf, gateway(20, 2)))
	}
	return fmt.Sprintf(`{"ports": [%s], "segments": [%s], "vrfs": [{"name": "red"}, {"name": "blue"}],
	  "policies": [{"name": "between", "default": "deny", "rules": [
	    {"name": "web", "protocol": 6, "dst": ["10.0.20.0/24", "fd00:20::/64"], "dstPorts": ["80"]},
	    {"name": "ping", "protocol": 1, "icmp": ["8"], "dst": ["10.0.20.0/24"]}]}]}`, strings.Join(ports, ","), strings.Join(segments, ","))
}

// The policy of a gateway decides about what is routed, in both directions and with replies, and about nothing else: inside a segment
// everything passes, and to the gateway itself, and in another VRF with the same addresses. It changes under traffic.
func TestGatewayPolicy(t *testing.T) {
	l := newLab(t)
	s := l.start("tenants", "192.0.2.1", parse(t, twoTenants(`, "policy": "between"`)))
	h := map[string]*netns.Host{}
	for _, vrf := range []string{"red", "blue"} {
		for host, at := range map[string][2]int{"a": {10, 1}, "b": {10, 2}, "c": {20, 3}} {
			h[vrf+"-"+host] = s.guest(vrf+"-"+host, fmt.Sprintf("10.0.%d.%d/24,fd00:%d::%d/64", at[0], at[1], at[0], at[1]), fmt.Sprintf("10.0.%d.254,fd00:%d::fe", at[0], at[0]))
		}
	}
	try := func(vrf string, ruled bool) {
		t.Helper()
		a, b, c := h[vrf+"-a"], h[vrf+"-b"], h[vrf+"-c"]
		for _, net := range []string{"10.0.%d.%d", "fd00:%d::%d"} {
			ip := func(net string, n, host int) string { return fmt.Sprintf(net, n, host) }
			wantTCP(t, a, b, ip(net, 10, 2), 81, true)
			wantUDP(t, a, b, ip(net, 10, 2), 81, true)
			wantTCP(t, a, c, ip(net, 20, 3), 80, true)
			wantTCP(t, a, c, ip(net, 20, 3), 81, !ruled)
			wantUDP(t, b, c, ip(net, 20, 3), 80, !ruled)
			wantTCP(t, c, a, ip(net, 10, 1), 80, !ruled)
		}
		wantPing(t, a, "10.0.20.3", true)
		wantPing(t, c, "10.0.10.1", !ruled)
		wantPing(t, a, "10.0.10.254", true)
		wantPing(t, a, "fd00:10::fe", true)
		wantPing(t, a, "10.0.20.254", true)
	}
	try("red", true)
	try("blue", false)
	if s.policyDrops("red-a") == 0 || s.policyDrops("red-c") == 0 || s.policyDrops("blue-a") != 0 {
		t.Errorf("dropped: %d from a, %d from c, %d in the other VRF", s.policyDrops("red-a"), s.policyDrops("red-c"), s.policyDrops("blue-a"))
	}
	gate := s.segments[10].iface
	s.must(parse(t, twoTenants("")))
	try("red", false)
	s.must(parse(t, twoTenants(`, "policy": "between"`)))
	try("red", true)
	if s.segments[10].iface != gate {
		t.Error("the gateway was made anew for its policy")
	}
}

// A policy whose flows know no VNI cannot tell two VRFs apart.
func TestGatewayPolicyRouted(t *testing.T) {
	both := strings.ReplaceAll(twoTenants(""), `"mac": "02:00:00:00:0`, `"policy": "between", "mac": "02:00:00:00:0`)
	if _, err := Parse([]byte(both)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		strings.Replace(both, `"default": "deny"`, `"routed": true, "default": "deny"`, 1): `segments[2].gateway.policy: "between": is a policy of VRF red, too: with routed, their flows would be one`,
		twoTenants(`, "policy": "betwen"`):                                                 `segments[0].gateway.policy: "betwen": must be the name of a policy`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
