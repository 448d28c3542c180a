package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
)

// ipsec is what of its kernel a guest needs beside the usual.
var ipsec = []string{"tun", "vxlan", "xfrm_user", "esp4", "gcm", "ctr", "ghash_generic", "seqiv", "sha512_generic", "drbg"}

// The recipe for IPsec, step by step as it is written, on two machines, since not every
// kernel that runs tests has ESP: the tunnel works, the wire has nothing but ESP, and what
// comes without it is not taken.
func TestIPsec(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	static := staticProgram(t)
	sw, x := n.Switch("sw"), n.Host("x")
	x.Quiet()
	n.Plug(x, "10.0.0.3/24", sw)
	guests := map[string]*qemu.Guest{}
	for i, host := range []string{"left", "right"} {
		guests[host] = qemu.Boot(t, sw, qemu.Config{
			Link: "br0", Addr: fmt.Sprintf("10.0.0.%d/24", i+1), Modules: ipsec, Programs: map[string]string{"/bin/p2p": static},
			Setup: []string{"mkdir -p /etc; printf 'udp 17\\nicmp 1\\n' >/etc/protocols", "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"},
		})
	}
	left, right := guests["left"], guests["right"]
	wire := sw.Capture(left.TAP, "ip")

	// forge sends five packets past the tunnel and returns how many come out of it: at once
	// if they have to, else not for a while.
	forge := func(to *qemu.Guest, addr, peer string, want int) int {
		t.Helper()
		received := func() (n int) { // nobody takes frames of that type, while all else is taken
			fmt.Sscan(to.Run("cat /sys/class/net/v*0/statistics/rx_dropped"), &n)
			return n
		}
		before := received()
		for i := range 5 {
			p := forgery(x, "eth0", to.MAC, peer, addr, fmt.Sprintf("forged %d", i))
			x.Inject("eth0", p)
		}
		x.Until("what is forged comes out", func() bool { return received()-before >= want })
		to.Run("sleep 0.3")
		return received() - before
	}

	const ready = "ready dev=vxs0 type=vxlan id=100 local=10.0.0.1:4789 mtu=1416\n"
	for _, b := range recipe(t, "encrypted.md", "IPsec") {
		for _, host := range []string{"left", "right"} {
			if b.Arg != host && b.Arg != "both" {
				continue
			}
			code, flags := cutTunnel(b.Text)
			if out, status := guests[host].Try("cd /tmp\n" + "set -e\n" + code); status != 0 {
				t.Fatalf("%s: %s: status %d\n%s", host, code, status, out)
			}
			if flags != nil {
				left.Run("p2p " + strings.Join(flags, " ") + " >/tmp/log 2>&1 &")
				x.Until("p2p is ready", func() bool { out, _ := left.Try("cat /tmp/log"); return strings.Contains(out, "\n") })
				if got := left.Run("cat /tmp/log"); got != ready {
					t.Fatalf("%q, want %q", got, ready)
				}
			}
		}
		if keys, status := left.Try("cat /tmp/ipsec.keys"); status == 0 {
			right.Run("umask 077; cat >/tmp/ipsec.keys <<END\n" + keys + "END")
		}
	}

	for _, ping := range []string{"ping -c 3 -W 2 192.168.7.2", fmt.Sprintf("ping -c 3 -W 2 -s %d 192.168.7.2", 1416-28)} {
		if out := left.Run(ping); !strings.Contains(out, " 3 packets received") {
			t.Errorf("%s", out)
		}
	}
	// TCP both ways; superframes make runs, which the kernel refuses under a policy.
	right.Run("sleep 60 | nc -l -p 7000 >/tmp/got &" + listening(7000)) // nc ends where its input does
	left.Run("seq 1 200000 >/tmp/sent; nc 192.168.7.2 7000 </tmp/sent")
	x.Until("all has arrived", func() bool { return right.Run("wc -c </tmp/got") == left.Run("wc -c </tmp/sent") })
	if got, sent := right.Run("md5sum </tmp/got"), left.Run("md5sum </tmp/sent"); got != sent {
		t.Errorf("sent %s, got %s", sent, got)
	}
	left.Run("sleep 60 | nc -l -p 7001 >/tmp/back &" + listening(7001))
	right.Run("nc 192.168.7.1 7001 </tmp/got")
	x.Until("all has come back", func() bool { return left.Run("wc -c </tmp/back") == left.Run("wc -c </tmp/sent") })

	if got := forge(right, "10.0.0.2", "10.0.0.1", 0); got != 0 {
		t.Errorf("the kernel's device took %d forged packets", got)
	}
	if got := forge(left, "10.0.0.1", "10.0.0.2", 0); got != 0 {
		t.Errorf("p2p took %d forged packets", got)
	}
	// Only the policy keeps them out.
	for host, dir := range map[string]string{"left": "10.0.0.1/32", "right": "10.0.0.2/32"} {
		guests[host].Run("ip xfrm policy del src 0.0.0.0/0 dst " + dir + " proto udp dport 4789 dir in")
	}
	if got := forge(right, "10.0.0.2", "10.0.0.1", 5); got != 5 {
		t.Errorf("without the policy the kernel's device took %d forged packets, want 5", got)
	}
	if got := forge(left, "10.0.0.1", "10.0.0.2", 5); got != 5 {
		t.Errorf("without the policy p2p took %d forged packets, want 5", got)
	}
	left.Run("kill $(pidof p2p)")

	seen := wire.Stop()
	rows := netns.Fields(t, seen, "eth.src != "+x.MAC("eth0"), "ip.proto", "ip.len", "esp.spi", "ip.flags.mf", "ip.frag_offset")
	spis, longest := map[string]int{}, 0
	for _, r := range rows {
		var length int
		fmt.Sscan(r[1], &length)
		longest = max(longest, length)
		if r[0] != "50" || r[3] != "0" || r[4] != "0" {
			t.Errorf("on the wire, beside whole packets of ESP: %v", r)
		}
		spis[r[2]]++
	}
	t.Logf("SPI and packets: %v, the longest of %d bytes", spis, longest)
	if spis["0x00001001"] < 500 || spis["0x00001002"] < 500 || longest > 1500 || longest < 1496 {
		t.Errorf("SPI and packets: %v, the longest of %d bytes", spis, longest)
	}
	for _, p := range seen {
		if bytes.Contains(p.Data, []byte("\n123456\n")) {
			t.Fatalf("plaintext on the wire: %q", p.Data)
		}
	}
}
