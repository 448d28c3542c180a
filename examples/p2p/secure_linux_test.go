package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/docs"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// recipe returns the commands under a heading of a page, with whose they are.
func recipe(t *testing.T, page, heading string) (bs []docs.Block) {
	t.Helper()
	all, err := docs.Blocks(page)
	must(t, err)
	for _, b := range all {
		if b.Heading == heading && b.Lang == "sh" {
			bs = append(bs, b)
		}
	}
	if len(bs) == 0 {
		t.Fatalf("%s: no commands under %q", page, heading)
	}
	return bs
}

// cutTunnel takes the command that runs p2p out of a block and returns its flags.
func cutTunnel(code string) (rest string, flags []string) {
	for line := range strings.Lines(code) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "p2p" && f[len(f)-1] == "&" {
			flags = f[1 : len(f)-1]
			continue
		}
		rest += line
	}
	return rest, flags
}

// forgery is a VXLAN packet of network 100 with a frame to all, which says text.
func forgery(h *netns.Host, dev, dstMAC, src, dst, text string) []byte {
	o := outer{srcMAC: h.MAC(dev), dstMAC: dstMAC, src: src, dst: dst, header: []byte{8, 0, 0, 0, 0, 0, 100, 0}}
	return o.packet(note("02:00:00:00:66:66", everyone, text))
}

const plain = "plainsecret12345" // 16 bytes, the longest pattern of ping

// talk sends plaintext both ways that a look at the wire would find.
func talk(h *netns.Host, addr string, size int) {
	h.Run("ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", "-M", "do", "-s", strconv.Itoa(size), "-p", fmt.Sprintf("%x", plain), addr)
}

// The recipe for WireGuard, step by step as it is written: the tunnel works, the wire has
// nothing but WireGuard, and what is forged past it is not taken. The forger is on the link
// itself and knows every address; before the filter is there he gets into the kernel's
// device, and into a p2p without -bind.
func TestWireGuard(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw, left, right, x := n.Switch("sw"), n.Host("left"), n.Host("right"), n.Host("x")
	x.Quiet()
	for i, h := range []*netns.Host{left, right, x} {
		n.Plug(h, fmt.Sprintf("10.0.0.%d/24", i+1), sw)
		h.TxOff("eth0")
		h.Sysctl("net.ipv6.conf.eth0.disable_ipv6", "1")
		for _, dev := range []string{"all", "eth0"} { // the forger's chance
			h.Sysctl("net.ipv4.conf."+dev+".rp_filter", "0")
		}
	}
	wire := left.Capture("eth0", "not arp")

	hosts := map[string]*netns.Host{"left": left, "right": right}
	dirs := map[string]string{"left": t.TempDir(), "right": t.TempDir()}
	names := map[string]string{"left": fmt.Sprintf("wgl%d", os.Getpid()), "right": fmt.Sprintf("wgr%d", os.Getpid())}
	for _, name := range names {
		t.Cleanup(func() { os.Remove("/var/run/wireguard/" + name + ".sock") })
	}
	var p *netns.Proc
	var flags []string
	var out string
	run := func(host, code string) {
		// In the lab WireGuard is a program, whose device has a name of its own on the machine.
		code = strings.ReplaceAll(code, "ip link add wg0 type wireguard\n", "wireguard-go wg0\n")
		code = strings.ReplaceAll(code, "wg0", names[host])
		code, found := cutTunnel(code)
		out += hosts[host].Run("bash", "-ec", "cd "+dirs[host]+"\n"+code)
		if found != nil {
			flags = found
			p = start(t, left, "ready dev=vxs0 type=vxlan id=100 local=10.99.0.1:4789 mtu=1370", flags...)
		}
	}
	// forge sends to a host past WireGuard and reports whether it comes out of the tunnel:
	// before a frame of the same way through the tunnel does.
	forged := 0
	forge := func(to *netns.Host, dev, addr, peer string, honest func(text string)) bool {
		t.Helper()
		c := to.Capture(dev, "")
		defer c.Stop()
		forged++
		text := fmt.Sprintf("forged %d.", forged)
		for range 3 {
			x.Inject("eth0", forgery(x, "eth0", to.MAC("eth0"), peer, addr, text))
		}
		mark := fmt.Sprintf("honest %d.", forged)
		honest(mark)
		c.Want(1, func(p netns.Packet) bool { return bytes.Contains(p.Data, []byte(mark)) })
		return says(c, text)
	}
	through := func(h *netns.Host, dev string) func(string) {
		return func(text string) { h.Inject(dev, note(h.MAC(dev), everyone, text)) }
	}

	for _, b := range recipe(t, "encrypted.md", "WireGuard") {
		for _, host := range []string{"left", "right"} {
			if b.Arg != host && b.Arg != "both" {
				continue
			}
			before, filter, found := strings.Cut(b.Text, "nft add table")
			run(host, before)
			if found {
				left.Until("the tunnel works", func() bool {
					_, err := left.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "192.168.7.2")
					return err == nil
				})
				if !forge(right, "vx0", "10.99.0.2", "10.99.0.1", through(left, "vxs0")) {
					t.Error("without the filter the kernel's device took nothing that was forged: the test cannot tell")
				}
				run(host, "nft add table"+filter)
			}
			if key, err := os.ReadFile(filepath.Join(dirs[host], "wg.pub")); err == nil {
				other := map[string]string{"left": "right", "right": "left"}[host]
				must(t, os.WriteFile(filepath.Join(dirs[other], "peer.pub"), key, 0o600))
			}
		}
	}
	if got := strings.Count(out, "3 packets transmitted, 3 received"); got != 2 {
		t.Errorf("the pings of the recipe:\n%s", out)
	}

	// What is long enough to fill the tunnel fills WireGuard's packets, of 1420 + 60 bytes, and
	// what is longer is refused at home.
	inside := left.Capture(names["left"], "")
	talk(left, "192.168.7.2", 1370-28)
	talk(right, "192.168.7.1", 1370-28)
	if out, err := left.Try(t.Context(), "ping", "-n", "-c", "1", "-M", "do", "-s", "1343", "192.168.7.2"); err == nil {
		t.Errorf("1371 bytes passed:\n%s", out)
	}
	for _, way := range []string{"-n 8M", "-n 8M -R"} {
		if r := left.IPerf(right, "192.168.7.2", strings.Fields(way)...); r.Bytes < 4<<20 {
			t.Errorf("TCP %s: %+v", way, r)
		}
	}
	if !says(inside, plain) {
		t.Errorf("not even WireGuard's own device shows %q: the test cannot tell", plain)
	}
	inside.Stop()

	if forge(right, "vx0", "10.99.0.2", "10.99.0.1", through(left, "vxs0")) {
		t.Error("the kernel's device took a forged packet in spite of the filter")
	}
	if out := right.Run("nft", "list", "table", "inet", "vxlan"); !strings.Contains(out, "counter packets 3 ") {
		t.Errorf("the filter has not counted three forged packets:\n%s", out)
	}
	ports := left.Nstat()["UdpNoPorts"]
	if forge(left, "vxs0", "10.99.0.1", "10.99.0.2", through(right, "vx0")) {
		t.Error("p2p took a forged packet in spite of -bind")
	}
	if got := left.Nstat()["UdpNoPorts"] - ports; got != 3 {
		t.Errorf("%d forged packets found no socket, want 3", got)
	}

	// The way becomes narrower: p2p hears it and tells who sends.
	left.MTU(names["left"], 1300)
	left.Until("an error of ICMP names 1250", func() bool {
		out, _ := left.Try(t.Context(), "ping", "-n", "-c", "2", "-i", "0.2", "-W", "0.2", "-M", "do", "-s", "1342", "192.168.7.2")
		return strings.Contains(out, "mtu = 1250)") || strings.Contains(out, "mtu=1250")
	})
	left.MTU(names["left"], 1420)

	bind := slices.Index(flags, "-bind")
	if bind < 0 {
		t.Fatalf("no -bind among %q", flags)
	}
	l := stop(t, p)
	l.wantDrops(t, "port-full", "too-big")
	p = start(t, left, "ready dev=vxs0 type=vxlan id=100 local=10.99.0.1:4789 mtu=1370", slices.Delete(slices.Clone(flags), bind, bind+2)...)
	if !forge(left, "vxs0", "10.99.0.1", "10.99.0.2", through(right, "vx0")) {
		t.Error("without -bind p2p took nothing that was forged: the test cannot tell")
	}
	stop(t, p)

	seen := wire.Stop()
	rows := netns.Fields(t, seen, "eth.src != "+x.MAC("eth0"), "udp.srcport", "udp.dstport", "ip.len", "frame.protocols")
	longest, count := 0, 0
	for _, r := range rows {
		if r[0] != "51820" || r[1] != "51820" {
			t.Fatalf("on the wire, beside WireGuard: %v", r)
		}
		if k, err := strconv.Atoi(r[2]); err == nil {
			longest = max(longest, k)
		}
		count++
	}
	if count < 1000 || longest != 1480 {
		t.Errorf("%d packets of WireGuard on the wire, the longest of %d bytes, want 1480", count, longest)
	}
	for _, s := range seen {
		if bytes.Contains(s.Data, []byte(plain)) {
			t.Fatalf("plaintext on the wire: %q", s.Data)
		}
	}
}

// The filter of SECURITY.md: a tunnel to a peer in the set works; a stranger, and one who
// takes a peer's address on another link, come no farther than it. Both get in before.
func TestFilter(t *testing.T) {
	n := netns.New(t)
	sw, a, b, x := n.Switch("sw"), n.Host("a"), n.Host("b"), n.Host("x")
	n.Plug(a, "10.0.0.1/24", sw)
	n.Plug(b, "10.0.0.2/24", sw)
	n.Plug(x, "10.0.0.66/24", sw)
	side, _ := n.Link(a, "10.66.0.1/24", x, "10.66.0.2/24")
	for _, dev := range []string{"all", "eth0", side} {
		a.Sysctl("net.ipv4.conf."+dev+".rp_filter", "0")
	}
	b.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.7.2/24"})
	p := start(t, a, families[0].ready("vxs0", 100, 1450), "-local", "10.0.0.1", "-remote", "10.0.0.2", "-id", "100")
	a.Addr("vxs0", "192.168.7.1/24")
	forge := func(name string) (stranger, impostor bool) {
		t.Helper()
		c := a.Capture("vxs0", "")
		defer c.Stop()
		x.Inject("eth0", forgery(x, "eth0", a.MAC("eth0"), "10.0.0.66", "10.0.0.1", name+" stranger"))
		x.Inject("eth1", forgery(x, "eth1", a.MAC(side), "10.0.0.2", "10.0.0.1", name+" impostor"))
		b.Inject("vx0", note(b.MAC("vx0"), everyone, name+" honest"))
		c.Want(1, func(p netns.Packet) bool { return bytes.Contains(p.Data, []byte(name+" honest")) })
		return says(c, name+" stranger"), says(c, name+" impostor")
	}
	a.Ping("192.168.7.2", 1)
	if stranger, impostor := forge("before"); !stranger || !impostor {
		t.Fatalf("without the filter: %v, %v: the test cannot tell", stranger, impostor)
	}
	for _, block := range recipe(t, "../../SECURITY.md", "Hardening") {
		a.Run("sh", "-ec", block.Text)
	}
	if stranger, impostor := forge("after"); stranger || impostor {
		t.Errorf("past the filter: a stranger %v, an impostor %v", stranger, impostor)
	}
	if out := a.Run("nft", "list", "table", "inet", "vxswitch"); strings.Count(out, "counter packets 1 ") != 2 {
		t.Errorf("the filter counts\n%s", out)
	}
	a.Ping("192.168.7.2", 2)
	stop(t, p)
}
