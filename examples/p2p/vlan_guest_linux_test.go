package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
)

// staticProgram builds p2p for a guest, which has no libraries.
func staticProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p2p")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TCP over VLAN devices on top of vxs0, and of a VLAN in a VLAN, is intact both ways with
// -inner-vlan pass: superframes that come out of the TAP with tags are cut behind them, and
// every packet on the wire fits. Two guests, since not every kernel that runs tests has VLAN
// devices.
func TestTaggedSuperframes(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw, static := n.Switch("sw"), staticProgram(t)
	var gs []*qemu.Guest
	for i := range 2 {
		g := qemu.Boot(t, sw, qemu.Config{
			Link: "br0", Addr: fmt.Sprintf("10.0.0.%d/24", i+1), Modules: []string{"tun", "8021q"}, Programs: map[string]string{"/bin/p2p": static},
		})
		g.Run(fmt.Sprintf("p2p -local 10.0.0.%d -remote 10.0.0.%d -id 7 -inner-vlan pass >/tmp/log 2>&1 &", i+1, 2-i))
		sw.Until("p2p is ready", func() bool { out, _ := g.Try("cat /tmp/log"); return strings.Contains(out, "\n") })
		if got, want := g.Run("cat /tmp/log"), fmt.Sprintf("ready dev=vxs0 type=vxlan id=7 local=10.0.0.%d:4789 mtu=1446\n", i+1); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		g.Run(fmt.Sprintf(`ip link set vxs0 up
			ip link add link vxs0 name one type vlan id 5
			ip link add link one name two mtu 1442 type vlan id 6
			ip addr add 192.168.5.%[1]d/24 dev one
			ip addr add 192.168.6.%[1]d/24 dev two
			ip link set one up
			ip link set two up`, i+1))
		gs = append(gs, g)
	}
	for _, net := range []string{"192.168.5.", "192.168.6."} {
		sw.Until("ping "+net, func() bool {
			out, _ := gs[0].Try("ping -c 1 -W 1 " + net + "2")
			return strings.Contains(out, " 1 packets received")
		})
	}
	gs[0].Run("seq 1 80000 >/tmp/sent")
	want := gs[0].Run("md5sum </tmp/sent")
	gs[1].Run("seq 1 80000 >/tmp/sent")
	wire := sw.Capture(gs[0].TAP, "udp port 4789")
	for port, c := range []struct {
		from int
		net  string
	}{{0, "192.168.5."}, {1, "192.168.5."}, {0, "192.168.6."}, {1, "192.168.6."}} {
		from, to := gs[c.from], gs[1-c.from]
		to.Run(fmt.Sprintf("sleep 60 | nc -l -p %d >/tmp/got &%s", 7000+port, listening(7000+port))) // nc ends where its input does
		from.Run(fmt.Sprintf("nc %s%d %d </tmp/sent", c.net, 2-c.from, 7000+port))
		sw.Until("all has arrived", func() bool { return to.Run("md5sum </tmp/got") == want })
	}
	tagged, sent := 0, [2]int{}
	for _, p := range wire.Stop() {
		if len(p.Data) > 14+1500 {
			t.Fatalf("%d bytes on the wire", len(p.Data))
		}
		if inner := p.Data[14+20+8+8:]; inner[12] == 0x81 && inner[13] == 0 {
			tagged++
		}
		sent[p.Data[14+15]-1]++
	}
	if n := sent[0] + sent[1]; tagged < n-10 {
		t.Errorf("of %d packets %d with a tag inside", n, tagged)
	}
	for i, g := range gs {
		g.Run("kill $(pidof p2p)")
		var l line
		sw.Until("p2p has ended", func() bool {
			out := g.Run("cat /tmp/log")
			_, text, ok := strings.Cut(out, "\nstats ")
			return ok && json.Unmarshal([]byte(text), &l) == nil
		})
		if l.Tx.Frames == 0 || sent[i] < l.Tx.Frames+200 {
			t.Errorf("guest %d: %d frames became %d packets: no superframes", i, l.Tx.Frames, sent[i])
		}
		if len(l.Drops) > 0 {
			t.Errorf("guest %d: dropped %v", i, l.Drops)
		}
	}
}
