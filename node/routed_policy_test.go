package node

import (
	"strings"
	"testing"
)

// With routed, flows of two VRFs whose addresses overlap would be one: a policy is of one VRF, wherever it is.
func TestRoutedPolicyOfTwoVRFs(t *testing.T) {
	const text = `{"policies": [{"name": "p", "routed": true}], "vrfs": [{"name": "red"}, {"name": "blue"}], "ports": [{"name": "a"}, {"name": "b"}], "segments": [
		{"vni": 1, RED "members": [{"port": "a" MEMBER1}], "gateway": {"vrf": "red", "mac": "02:00:00:00:fe:01", "addresses": ["10.0.0.1/24"] GATE1}},
		{"vni": 2, BLUE "members": [{"port": "b" MEMBER2}], "gateway": {"vrf": "blue", "mac": "02:00:00:00:fe:02", "addresses": ["10.0.0.1/24"] GATE2}}]}`
	for _, x := range []struct{ first, second, want string }{
		{"RED", "BLUE", "segments[1].policy"},
		{"RED", "MEMBER2", "segments[1].members[0].policy"},
		{"MEMBER1", "GATE2", "segments[1].gateway.policy"},
		{"GATE1", "BLUE", "segments[1].policy"},
		{"GATE1", "GATE2", "segments[1].gateway.policy"},
		{"RED", "GATE1", ""},
		{"RED", "MEMBER1", ""},
	} {
		s := text
		for _, at := range []string{"RED", "BLUE", "MEMBER1", "MEMBER2", "GATE1", "GATE2"} {
			is := ""
			switch {
			case at != x.first && at != x.second:
			case at == "RED" || at == "BLUE":
				is = `"policy": "p",`
			default:
				is = `, "policy": "p"`
			}
			s = strings.Replace(s, at, is, 1)
		}
		_, err := Parse([]byte(s))
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want+": ") {
			t.Errorf("%s and %s: %v, want %q", x.first, x.second, err, x.want)
		}
	}
}
