package main

import (
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// kernelGPE makes the kernel's VXLAN-GPE device in h, which carries IP without Ethernet:
// routes say to whom, in which VNI.
func kernelGPE(h *netns.Host, local, remote, addrs string, to ...string) {
	h.IP("link", "add", "gpe0", "type", "vxlan", "dstport", "4790", "external", "gpe", "local", local, "udp6zerocsumrx")
	h.Up("gpe0")
	for a := range strings.SplitSeq(addrs, ",") {
		h.Addr("gpe0", a)
	}
	how := []string{"encap", "ip", "id", "77", "dst", remote}
	if strings.Contains(remote, ":") { // of itself it sends hop limit 0, and no checksum (Linux 6.18)
		how = []string{"encap", "ip6", "id", "77", "dst", remote, "hoplimit", "64", "csum"}
	}
	for _, p := range to {
		h.Route(p, append(how, "dev", "gpe0")...)
	}
}

// The kernel's VXLAN-GPE is the other end, over both address families and for both: ping
// and TCP both ways, the header's bytes, the longest packet.
func TestKernelGPE(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			a, b := f.hosts(t)
			a.Run("ethtool", "-K", "eth0", "tx-udp-segmentation", "off") // a run is seen as the packets it is
			a.Ready()
			b.Ready()
			kernelGPE(b, f.remote, f.local, "192.168.7.2/32,fd07::2/128", "192.168.7.1/32", "fd07::1/128")
			mtu := f.mtu + 14
			p := start(t, a, fmt.Sprintf("ready dev=vxs0 type=gpe id=77 local="+f.brackets+":4790 mtu=%d", f.local, mtu),
				"-type", "gpe", "-tun", "-id", "77", "-local", f.local, "-remote", f.remote)
			a.Addr("vxs0", "192.168.7.1/24,fd07::1/64")

			seen := b.Capture("eth0", "udp port 4790")
			a.Ping("192.168.7.2", 5)
			b.Ping("192.168.7.1", 5)
			a.Ping("fd07::2", 5)
			b.Ping("fd07::1", 5)
			heads := map[string]int{}
			for _, p := range seen.Stop() {
				at := 14 + 20 + 8
				if f.name == "IPv6" {
					at += 20
				}
				heads[fmt.Sprintf("% x", p.Data[at:at+9])]++
			}
			// The same from both ends: 5 requests and 5 replies each way, of each family.
			if h4, h6 := heads["0c 00 00 01 00 00 4d 00 45"], heads["0c 00 00 02 00 00 4d 00 60"]; h4 != 20 || h6 < 20 || len(heads) != 2 {
				t.Errorf("headers %v", heads)
			}
			a.Run("ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", fmt.Sprint(mtu-28), "192.168.7.2")
			throughput(t, a, b, map[string]string{"IPv4": "192.168.7.2", "IPv6": "fd07::2"}[f.name])

			l := ask(t, p)
			if len(l.Peers) != 1 || l.Peers[0].Rx < 1000 || l.Peers[0].Tx < 1000 || len(l.FDB) != 0 {
				t.Errorf("peers %+v, FDB %+v", l.Peers, l.FDB)
			}
			l.wantDrops(t, "port-full")
			stop(t, p)
			if !gone(t, a, "vxs0") {
				t.Error("the device is left")
			}
		})
	}
}

// Two of ours carry Ethernet in VXLAN-GPE, next protocol 3; only copies of flooded frames
// have the B bit.
func TestGPEBetweenTAPs(t *testing.T) {
	t.Parallel()
	a, b := families[0].hosts(t)
	for i, h := range []*netns.Host{a, b} {
		local, remote := fmt.Sprintf("10.0.0.%d", i+1), fmt.Sprintf("10.0.0.%d", 2-i)
		start(t, h, "ready dev=vxs0 type=gpe id=5 local="+local+":4790 mtu=1450", "-type", "gpe", "-id", "5", "-local", local, "-remote", remote)
	}
	seen := b.Capture("eth0", "udp port 4790")
	a.Addr("vxs0", "192.168.7.1/24")
	b.Addr("vxs0", "192.168.7.2/24")
	a.Ping("192.168.7.2", 5)
	var wrong []string
	arp := 0
	for _, p := range seen.Stop() {
		head, frame := p.Data[42:50], p.Data[50:]
		want := []byte{0x0c, 0, 0, 3, 0, 0, 5, 0}
		if frame[0]&1 != 0 {
			want[0] |= 2
		}
		if frame[12] == 8 && frame[13] == 6 {
			arp++
		}
		if !slices.Equal(head, want) {
			wrong = append(wrong, fmt.Sprintf("% x of a frame to % x", head, frame[:6]))
		}
	}
	if len(wrong) > 0 || arp < 2 {
		t.Errorf("%d of ARP, headers %q", arp, wrong)
	}
	throughput(t, a, b, "192.168.7.2")
}

// Packets of a VXLAN-GPE peer that are not as the rules say are dropped by name.
func TestGPERefusals(t *testing.T) {
	a, b := families[0].hosts(t)
	p := start(t, a, "ready dev=vxs0 type=gpe id=77 local=10.0.0.1:4790 mtu=1464",
		"-type", "gpe", "-tun", "-id", "77", "-local", "10.0.0.1", "-remote", "10.0.0.2")
	far := netns.Open(t, b, func() (net.Conn, error) { return net.Dial("udp", "10.0.0.1:4790") })
	const ip = "45000014000000004001f9e3c0a80702c0a80701"
	for _, c := range []struct{ head, reason string }{
		{"1c00000100004d00", "gpe-version"},
		{"0400000100004d00", "no-vni-flag"},
		{"0d00000100004d00", "gpe-oam"},
		{"0800000100004d00", "gpe-protocol"}, // P clear
		{"0c00000400004d00", "gpe-protocol"}, // NSH
		{"0c00000500004d00", "gpe-protocol"},
		{"0c00000200004d00", "bad-header"}, // IPv6, says the header
		{"0c00000100004e00", "unknown-vni"},
		{"0c00000100004d0045000014", "ttl"}, // 0, in a header of which that is the first half
	} {
		packet, err := hex.DecodeString(c.head + ip)
		must(t, err)
		want := ask(t, p).Drops[c.reason] + 1
		if _, err := far.Write(packet); err != nil {
			t.Fatal(err)
		}
		a.Until(c.head+" dropped as "+c.reason, func() bool { return ask(t, p).Drops[c.reason] == want })
	}
}
