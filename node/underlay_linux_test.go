package node

import (
	"fmt"
	"testing"
)

// A node whose tunnel goes past the stack of its host, with an address of its own, and one
// whose does not: guests reach each other, and a new configuration changes the underlay.
func TestPacketUnderlay(t *testing.T) {
	l := newLab(t)
	const rest = `"ports": [{"name": "lan0", "mtu": 1400}], "segments": [{"vni": 100, "tunnel": "t", "flood": ["%s"], "members": [{"port": "lan0"}]}]}`
	raw := parse(t, `{"tunnels": [{"name": "t", "local": "192.0.2.101", "underlay": "packet", "bind": "eth0", "mac": "02:00:00:00:07:01"}], `+fmt.Sprintf(rest, "192.0.2.2"))
	a := l.start("a", "192.0.2.1", raw)
	b := l.start("b", "192.0.2.2", parse(t, `{"tunnels": [{"name": "t", "local": "192.0.2.2"}], `+fmt.Sprintf(rest, "192.0.2.101")))
	near, far := a.guest("lan0", "10.0.0.1/24,fd00::1/64", ""), b.guest("lan0", "10.0.0.2/24,fd00::2/64", "")
	w := l.watch()
	wantTTL(t, near, "10.0.0.2", 64)
	w.want("vxlan && icmp", append(tunnels, "eth.src"),
		"192.0.2.101 192.0.2.2 100 02:00:00:00:07:01", "192.0.2.2 192.0.2.101 100 "+b.h.MAC("eth0"))
	wantTTL(t, far, "fd00::1", 64)

	raw2 := *raw
	raw2.Tunnels = append([]Tunnel(nil), raw.Tunnels...)
	raw2.Tunnels[0].Underlay, raw2.Tunnels[0].Bind, raw2.Tunnels[0].MAC = 0, "", [6]byte{}
	a.h.Addr("eth0", "192.0.2.101/24")
	a.must(&raw2)
	b.h.IP("neigh", "flush", "dev", "eth0")
	wantTTL(t, near, "10.0.0.2", 64)
}
