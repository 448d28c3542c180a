package routed_test

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A running is a program in host 11, which may be started again.
type running struct {
	*netns.Proc
	l    *flanneldlab.Lab
	host *netns.Host
	pod  *flanneldlab.Pod
	way  string // to etcd
}

// start starts the program, and returns its subnet.
func (r *running) start(t *testing.T, ttl string) netip.Prefix {
	t.Helper()
	exe := check.Must(os.Executable())(t)
	r.Proc = r.host.Start("env", programEnv+"="+strings.Join([]string{r.way, ttl, r.pod.NS}, " "), exe)
	r.Want("ready ")
	_, text, _ := strings.Cut(r.Output(), "ready ")
	text, _, _ = strings.Cut(text, "\n")
	return netip.MustParsePrefix(text)
}

// A node of ours and a flanneld are killed and started again, etcd cannot be reached for a while, and for too long while the
// node is suspended: each is told in time, nobody loses what is his, and nobody takes what is another's.
func TestProgram(t *testing.T) {
	netns.Tool(t, "nft")
	l := flanneldlab.New(t, fmt.Sprintf(nftJSON, ""))
	b := l.Theirs(2)
	r := &running{l: l, host: l.Host(11), pod: &flanneldlab.Pod{Host: l.Net.Host("pod")}}
	r.way = l.WayFrom(l.Host(9), "192.0.2.9")
	subnet := r.start(t, "10s")
	gate := subnet.Addr().Next()
	r.pod.IPv4 = gate.Next()
	r.pod.Addr("eth0", netip.PrefixFrom(r.pod.IPv4, subnet.Bits()).String())
	r.pod.Route("default", "via", gate.String())
	reach(t, r.pod.Host, b.Pod.IPv4.String())
	wantWay(t, r.pod, b.Pod, 62)

	again := func(what string) {
		t.Helper()
		if got := r.start(t, "10s"); got != subnet {
			t.Fatalf("%s: %v, before %v", what, got, subnet)
		}
		begun := time.Now()
		reach(t, b.Pod.Host, r.pod.IPv4.String())
		t.Logf("%s: reached %v after it was ready", what, time.Since(begun).Round(time.Millisecond))
		wantWay(t, r.pod, b.Pod, 62)
	}
	r.Kill()
	again("killed")
	was := b.Subnets(t)
	b.Stop()
	b.Node = flanneldlab.Start(t, b.Host, l.Way(b.Host))
	if got := b.Subnets(t); got[0] != was[0] {
		t.Fatalf("flanneld has %v, had %v", got, was)
	}
	reach(t, r.pod.Host, b.Pod.IPv4.String())
	wantWay(t, r.pod, b.Pod, 62)

	// A firewall that drops, for less than the lease lives.
	r.host.Run("nft", "add table inet away; add chain inet away out { type filter hook output priority 0; ip daddr 192.0.2.9 tcp dport > 0 drop; }")
	r.Want("the store is away")
	wantWay(t, r.pod, b.Pod, 62)
	r.host.Run("nft", "delete table inet away")
	r.Want("the store is back")
	wantWay(t, r.pod, b.Pod, 62)

	// Suspended for longer than that, and another has the subnet meanwhile.
	key := prefix + "/subnets/" + flannel.Subnet{IPv4: subnet}.Key()
	r.Kill()
	if got := r.start(t, "2s"); got != subnet {
		t.Fatalf("%v, before %v", got, subnet)
	}
	reach(t, b.Pod.Host, r.pod.IPv4.String())
	r.Signal(syscall.SIGSTOP)
	until(t, "that the lease ends", func() bool { return l.Etcd.Ctl(t, "get", key) == "" })
	a := flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.MustParseAddr("192.0.2.77"), VNI: 1, MAC: podsMAC(77)}}
	l.Etcd.Ctl(t, "put", key, string(a.Value()))
	r.Signal(syscall.SIGCONT)
	if err := r.Wait(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("it ends with %v", err)
	}
	if got := l.Etcd.Ctl(t, "get", "--print-value-only", key); strings.TrimSpace(got) != string(a.Value()) {
		t.Errorf("the key is now %s", got)
	}
}
