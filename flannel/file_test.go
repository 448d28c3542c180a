package flannel

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestSubnetFile(t *testing.T) {
	four := check.Must(ParseKey("10.230.33.0-24"))(t)
	both := check.Must(ParseKey("10.230.33.0-24&fd00:230:0:33::-64"))(t)
	networks := Subnet{prefixes("10.230.0.0/16")[0], prefixes("fd00:230::/48")[0]}
	for want, f := range map[string]SubnetFile{
		"FLANNEL_NETWORK=10.230.0.0/16\nFLANNEL_SUBNET=10.230.33.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n":                                                                             {networks, four, 1450, false},
		"FLANNEL_NETWORK=10.230.0.0/16\nFLANNEL_SUBNET=10.230.33.1/24\nFLANNEL_IPV6_NETWORK=fd00:230::/48\nFLANNEL_IPV6_SUBNET=fd00:230:0:33::1/64\nFLANNEL_MTU=1430\nFLANNEL_IPMASQ=true\n": {networks, both, 1430, true},
	} {
		b := f.Format()
		if string(b) != want {
			t.Errorf("%s\nwant\n%s", b, want)
		}
		if s := PreviousSubnet(b); s != f.Subnet {
			t.Errorf("read again %v, want %v", s, f.Subnet)
		}
	}
	for text, want := range map[string]Subnet{
		"": {}, "rubbish\n=\nFLANNEL_SUBNET\nFLANNEL_SUBNET=x\n": {}, "FLANNEL_SUBNET=10.230.33.1/24,10.230.34.1/24\n": {},
		"FLANNEL_SUBNET=fd00::1/64\nFLANNEL_IPV6_SUBNET=10.0.0.1/8": {}, `FLANNEL_SUBNET="10.230.33.1/24"` + "\r\n# a comment": four,
	} {
		if s := PreviousSubnet([]byte(text)); s != want {
			t.Errorf("%q: %v, want %v", text, s, want)
		}
	}
}
