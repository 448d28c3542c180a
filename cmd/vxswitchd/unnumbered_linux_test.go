package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The leaves of the sample evpn-ebgp, each the peer of the other's interface. Reloads take another interface, which is not there, and
// come back.
func TestEVPNUnnumbered(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	wire := n.Switch("wire")
	var leaves [2]*system
	conf := func(i int, dev string) string {
		text := sample(t, fmt.Sprintf("evpn-ebgp/leaf%d.json", i+1))
		peers := fmt.Sprintf(`"listen": ["[::]:179"], "peers": [{"interface": %q, "as": "external", "holdTime": "9s"}]`, dev)
		return regexp.MustCompile(`"peers": \[{"address".*\]`).ReplaceAllString(text, peers)
	}
	for i := range leaves {
		s := newSystem(t, n, fmt.Sprint("leaf", i+1))
		n.Plug(s.Host, fmt.Sprintf("192.0.2.%d/24", 21+i), wire)
		leaves[i] = s
		s.write(conf(i, "eth0"))
		s.run()
	}
	shows := func(want string) {
		t.Helper()
		is := regexp.MustCompile(want)
		leaves[0].Until(want, func() bool { return is.MatchString(leaves[0].ctl("evpn peers")) })
	}
	up := `\nfe80::[0-9a-f:]+%eth0 +65022 +established +\S+ +9s +- +[1-9]\d* +\d+ +\d+ +`
	shows(up)
	leaves[0].write(conf(0, "eth9"))
	leaves[0].ctl("reload")
	shows(`\neth9 +external +idle +\S+ +- +- +0 +0 +0 +eth9: there is no such interface\n`)
	if out := leaves[0].ctl("-json evpn peers"); !strings.Contains(out, `"interface":"eth9","link":"eth9: there is no such interface"`) {
		t.Error(out)
	}
	leaves[0].write(conf(0, "eth0"))
	leaves[0].ctl("reload")
	shows(up)
}
