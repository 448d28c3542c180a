package main

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

func addressOf(r *current.Result) string {
	a, _ := netip.AddrFromSlice(r.IPs[0].Address.IP.To4())
	return a.String()
}

// Pods of two machines reach each other, also after both nodes were killed. DEL leaves nothing, however often it is called.
func TestPods(t *testing.T) {
	for _, kind := range []string{veth, tap} {
		t.Run(kind, func(t *testing.T) {
			n, a, b := newPair(t)
			pa, pb := n.Host("pa"), n.Host("pb")
			la, lb := a.network(`, "port": "`+kind+`"`), b.network(`, "port": "`+kind+`", "dns": {"nameservers": ["10.1.0.53"]}`)
			ra, rb := a.add(la, at(pa, "eth0")), b.add(lb, at(pb, "eth0"))
			to := addressOf(rb)
			pa.Ping(to, 3)
			pa.Transfer(pb, to+":7000", 10<<20)
			if got := pa.IP("route", "show", "default"); !strings.HasPrefix(got, "default via 10.1.255.254 dev eth0") {
				t.Errorf("route %q", got)
			}

			// The result is what there is.
			at0 := len(rb.Interfaces) - 1
			i := rb.Interfaces[at0]
			if i.Name != "eth0" || i.Mac != pb.MAC("eth0") || i.Mtu != 1450 || i.Sandbox != netns.Folder+"/"+pb.NS ||
				*rb.IPs[0].Interface != at0 || rb.IPs[0].Address.String() != to+"/16" || rb.IPs[0].Gateway.String() != "10.1.255.254" ||
				len(rb.Routes) != 1 || len(rb.DNS.Nameservers) != 1 || len(ra.DNS.Nameservers) != 0 {
				t.Errorf("%+v %+v %+v", i, rb.IPs[0], rb)
			}
			if got := pb.IP("link", "show", "eth0"); !strings.Contains(got, "mtu 1450") {
				t.Error(got)
			}
			must(t, a.check(la, at(pa, "eth0")))
			must(t, b.check(lb, at(pb, "eth0")))

			for _, m := range []*machine{a, b} {
				m.proc.Signal(syscall.SIGKILL)
				m.proc.Wait()
				m.run()
			}
			pa.Ping(to, 3)
			pa.Transfer(pb, to+":7000", 1<<20)
			must(t, a.check(la, at(pa, "eth0")))

			a.ctl("reload") // leaves them where they are
			pa.Ping(to, 1)

			for range 2 {
				must(t, a.del(la, at(pa, "eth0")))
				must(t, b.del(lb, at(pb, "eth0")))
			}
			a.wantNothing("after DEL")
			b.wantNothing("after DEL")
			if got := pa.IP("-o", "link"); strings.Contains(got, "eth0") {
				t.Error(got)
			}
		})
	}
}

// DEL works without the namespace, and without the node, which forgets what has gone meanwhile when it starts again.
func TestGone(t *testing.T) {
	for _, kind := range []string{veth, tap} {
		t.Run(kind, func(t *testing.T) {
			n, a, _ := newPair(t)
			l := a.network(`, "port": "` + kind + `"`)

			p1 := n.Host("p1")
			rt := at(p1, "eth0")
			a.add(l, rt)
			must(t, netns.Remove(p1.NS))
			must(t, a.del(l, rt))
			a.wantNothing("without the namespace")
			rt.NetNS = ""
			must(t, a.del(l, rt))

			p2, p3 := n.Host("p2"), n.Host("p3")
			a.add(l, at(p2, "eth0"))
			kept := a.add(l, at(p3, "eth0"))
			a.proc.Signal(syscall.SIGKILL)
			a.proc.Wait()
			a.proc = nil
			must(t, a.del(l, at(p2, "eth0")))
			must(t, a.del(l, at(p2, "eth0")))
			a.run()
			if got := a.ctl("port"); strings.Contains(got, portName("p2", "eth0")) || !strings.Contains(got, portName("p3", "eth0")) {
				t.Errorf("the node has\n%s", got)
			}
			p4 := n.Host("p4")
			a.add(l, at(p4, "eth0"))
			p4.Ping(addressOf(kept), 1)
			must(t, a.del(l, at(p3, "eth0")))
			must(t, a.del(l, at(p4, "eth0")))
			a.wantNothing("at the end")
		})
	}
}

// Sixty-three pods are attached at once, are there again after the node was killed, and are detached at once.
func TestManyPods(t *testing.T) {
	const count = 63
	n, a, b := newPair(t)
	l, far := a.network(""), n.Host("far")
	to := addressOf(b.add(b.network(""), at(far, "eth0")))
	var pods []*netns.Host
	for i := range count {
		pods = append(pods, n.Host(fmt.Sprintf("q%d", i)))
	}
	each := func(do func(i int) error) {
		t.Helper()
		errs := make(chan error, count)
		for i := range count {
			go func() { errs <- do(i) }()
		}
		for range count {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
	begin := time.Now()
	each(func(i int) error { _, err := a.tryAdd(l, at(pods[i], "eth0")); return err })
	t.Logf("%d pods in %v", count, time.Since(begin))
	if t.Failed() {
		return
	}
	ping := func(i int) error { _, err := pods[i].Try(t.Context(), "ping", "-c", "1", "-W", "5", to); return err }
	each(ping)
	a.proc.Signal(syscall.SIGKILL)
	a.proc.Wait()
	begin = time.Now()
	a.run()
	t.Logf("ready %v after the start", time.Since(begin))
	each(ping)
	each(func(i int) error { return a.check(l, at(pods[i], "eth0")) })
	each(func(i int) error { return a.del(l, at(pods[i], "eth0")) })
	a.wantNothing("after DEL")
}
