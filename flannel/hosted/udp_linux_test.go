package hosted_test

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
)

// The backend udp beside a real flanneld, and between nodes of ours: pods and hosts reach each other, TCP passes both ways
// without a wrong checksum, and what is on the wire is IP in UDP.
func TestUDP(t *testing.T) {
	l := flanneldlab.New(t, strings.Replace(strings.Replace(vxlanJSON, "%s", `, "Port": 8300`, 1), "vxlan", "udp", 1))
	b := l.Theirs(2)
	a, c := ours(t, l, 11, nil), ours(t, l, 12, nil)
	if got := b.Value(t, "FLANNEL_MTU") + strings.TrimSpace(a.host.Run("cat", "/sys/class/net/flannel0/mtu")); got != "14721472" {
		t.Errorf("MTUs %s", got)
	}
	wire := a.host.Capture("eth0", "udp port 8300")
	for _, x := range [][2]*flanneldlab.Pod{{a.pod, b.Pod}, {b.Pod, a.pod}, {a.pod, c.pod}} {
		reach(t, x[0].Host, x[1].IPv4.String())
		if ttl := x[0].PingTTL(x[1].IPv4.String()); ttl != 60 { // two kernels, and two that look into tunnels
			t.Errorf("TTL %d", ttl)
		}
		x[0].Run("ping", "-n", "-c", "1", "-s", "1444", "-M", "do", x[1].IPv4.String())
		x[0].Transfer(x[1].Host, x[1].IPv4.String()+":9000", 4<<20)
	}
	a.host.Ping(b.Pod.IPv4.String(), 1) // from the address of flannel0
	b.Host.Ping(a.pod.IPv4.String(), 1)
	for _, p := range []*flanneldlab.Pod{a.pod, b.Pod, c.pod} {
		if got := p.ChecksumErrors(); len(got) > 0 {
			t.Errorf("checksum errors %v", got)
		}
	}
	packets := wire.Stop()
	if len(packets) == 0 {
		t.Error("nothing is on the wire")
	}
	for _, p := range packets {
		if inner := p.Data[14+20+8]; inner>>4 != 4 {
			t.Fatalf("% x is not IPv4 in UDP", p.Data)
		}
	}
	if got := a.host.Run("ip", "route", "show", "dev", "flannel0"); !strings.HasPrefix(got, "10.3.0.0/16 ") {
		t.Errorf("routes %s", got)
	}
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if got := a.host.Run("ip", "-o", "link", "show", "type", "tun"); got != "" {
		t.Errorf("left: %s", got)
	}
}
