package routed_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
)

// The backend udp beside a real flanneld, whose process looks at each packet both ways.
func TestFlanneldUDP(t *testing.T) {
	l := flanneldlab.New(t, `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "udp"}}`)
	b := l.Theirs(2)
	h := l.Host(11)
	a := inHost(t, l, h).join(11, nil)
	pod := a.kernelPod(l, "pod")
	reach(t, pod.Host, b.Pod.IPv4.String())
	wire := h.Capture("eth0", "udp port 8285")
	wantWay(t, pod, b.Pod, 61)
	packets := wire.Stop()
	if len(packets) == 0 {
		t.Error("nothing is on the wire")
	}
	for _, p := range packets {
		if inner := p.Data[14+20+8:]; inner[0] != 0x45 {
			t.Errorf("% x is not IPv4 in UDP", p.Data)
		}
	}
	wantStream(t, pod, b.Pod)
	b.Host.Ping(pod.IPv4.String(), 1) // from the address of flannel0
}

// The backend ipip beside a real flanneld in a guest, whose kernel has the device for it.
func TestFlanneldIPIP(t *testing.T) {
	l := flanneldlab.New(t, `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "ipip"}}`)
	way := l.WayFrom(l.Host(9), "192.0.2.9")
	g := qemu.Boot(t, l.Bare(2), qemu.Config{
		Link: "eth0", Addr: "192.0.2.2/24", Modules: []string{"nf_tables"}, Memory: 512, // flanneld alone is 75 MB
		Programs: map[string]string{"/bin/flanneld": flanneldlab.Build(t), "/sbin/nft": "nft", "/sbin/iptables": "iptables", "/sbin/ip6tables": "ip6tables"},
		Setup: []string{
			"echo 1 >/proc/sys/net/ipv4/ip_forward",
			"flanneld -etcd-endpoints " + way + " -iface eth0 -subnet-file /tmp/subnet.env -iptables-forward-rules=false >/tmp/flanneld 2>&1 &",
		},
	})
	var subnet flannel.Subnet
	for end := time.Now().Add(qemu.BootTimeout); !subnet.IsValid(); {
		text, _ := g.Try("sleep 0.2; cat /tmp/subnet.env || cat /tmp/flanneld")
		if subnet = flannel.PreviousSubnet([]byte(text)); time.Now().After(end) {
			t.Fatalf("no subnet file of flanneld:\n%s", text)
		}
	}
	there := subnet.IPv4.Addr().Next().Next()
	g.Run(fmt.Sprintf("ip addr add %v/32 dev lo", there)) // a pod without a namespace

	h := l.Host(11)
	a := inHost(t, l, h).join(11, nil)
	pod := a.kernelPod(l, "pod")
	wire := h.Capture("eth0", "ip proto 4")
	reach(t, pod.Host, there.String())
	if ttl := pod.PingTTL(there.String()); ttl != 63 { // no hop is there
		t.Errorf("TTL %d", ttl)
	}
	if out := g.Run("ip route get " + pod.IPv4.String()); !strings.Contains(out, "via 192.0.2.11 dev flannel.ipip") {
		t.Errorf("its way is %s", out)
	}
	if out := g.Run("ping -c 1 -W 5 " + pod.IPv4.String()); !strings.Contains(out, "ttl=63") {
		t.Errorf("%s", out)
	}
	stream(t, g, pod, there)
	packets := wire.Stop()
	if len(packets) == 0 {
		t.Error("nothing is on the wire")
	}
	for _, p := range packets {
		if p.Data[14+9] != 4 || p.Data[14+20] != 0x45 {
			t.Errorf("% x is not IPv4 in IPv4", p.Data)
		}
	}
}

// stream sends TCP from a guest to a pod, and back.
func stream(t *testing.T, g *qemu.Guest, pod *flanneldlab.Pod, there netip.Addr) {
	t.Helper()
	const size = 1 << 20
	g.SendTCP(pod.Host, pod.IPv4.String(), size)

	g.Run("nc -l -p 9001 >/tmp/got 2>/dev/null &")
	var out net.Conn
	until(t, "that the guest listens", func() bool {
		pod.Do(func() {
			d := net.Dialer{Timeout: 5 * time.Second}
			if c, err := d.Dial("tcp", netip.AddrPortFrom(there, 9001).String()); err == nil {
				out = c
			}
		})
		return out != nil
	})
	defer out.Close()
	out.SetDeadline(time.Now().Add(netns.Timeout))
	if _, err := out.Write(make([]byte, size)); err != nil {
		t.Error(err)
	}
	out.(*net.TCPConn).CloseWrite()
	until(t, "all that was sent to the guest", func() bool {
		text, _ := g.Try("wc -c </tmp/got")
		return strings.TrimSpace(text) == fmt.Sprint(size)
	})
}
