package daemon

import (
	"testing"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestMasquerade(t *testing.T) {
	n := check.Must(flannel.ParseNetwork([]byte(`{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`)))(t)
	own := check.Must(flannel.ParseKey("10.3.7.0-24&fc00:3:0:7::-64"))(t)
	const want = `table inet vxflanneld
delete table inet vxflanneld
table inet vxflanneld {
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 10.3.0.0/16 ip daddr 10.3.0.0/16 return
		ip saddr 10.3.0.0/16 ip daddr != 224.0.0.0/4 masquerade fully-random
		ip daddr 10.3.7.0/24 return
		ip saddr != 10.3.0.0/16 ip daddr 10.3.0.0/16 masquerade fully-random
		ip6 saddr fc00:3::/48 ip6 daddr fc00:3::/48 return
		ip6 saddr fc00:3::/48 ip6 daddr != ff00::/8 masquerade fully-random
		ip6 daddr fc00:3:0:7::/64 return
		ip6 saddr != fc00:3::/48 ip6 daddr fc00:3::/48 masquerade fully-random
	}
}
`
	if got := masquerade(n, own, true); got != want {
		t.Errorf("%s", got)
	}
}
