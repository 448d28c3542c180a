package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// An evpnLab has the two leaves of a folder of samples and two speakers of FRR with its configuration.
type evpnLab struct {
	t             *testing.T
	wire          *netns.Host
	frr           [2]*frr.FRR
	leaves        [2]*system
	c             [2]*api.Client
	vm1, vm2, vm3 *netns.Host
}

func sample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("configs", name))
	must(t, err)
	return strings.ReplaceAll(string(text), api.DefaultSocket, "SOCKET")
}

func newEVPNLab(t *testing.T, folder, conf string, first int) *evpnLab {
	n := netns.New(t)
	l := &evpnLab{t: t, wire: n.Switch("wire")}
	text := sample(t, filepath.Join(folder, conf))
	for i := range l.frr {
		h, addr := n.Host(fmt.Sprint("frr", i+1)), fmt.Sprintf("192.0.2.%d", i+1)
		n.Plug(h, addr+"/24", l.wire)
		text := strings.NewReplacer("router-id 192.0.2.1", "router-id "+addr, "cluster-id 192.0.2.1", "cluster-id "+addr).Replace(text)
		l.frr[i] = frr.Start(t, h, frr.Daemon{Name: "zebra"}, frr.Daemon{Name: "bgpd", Config: text})
	}
	for i := range l.leaves {
		s := newSystem(t, n, fmt.Sprint("leaf", i+1))
		n.Plug(s.Host, fmt.Sprintf("192.0.2.%d/24", first+i), l.wire)
		l.leaves[i], l.c[i] = s, api.NewClient(s.socket)
		if i == 0 {
			l.vm1 = s.guestAt(n, "vm1", "10.0.10.11/24", "vm1", "br1")
		} else {
			l.vm2, l.vm3 = s.guestAt(n, "vm2", "10.0.10.12/24", "vm2", "br2"), s.guestAt(n, "vm3", "10.0.20.13/24", "vm3", "br3")
		}
		s.write(sample(t, filepath.Join(folder, fmt.Sprintf("leaf%d.json", i+1))))
		s.run()
	}
	l.vm1.Route("default", "via", "10.0.10.1")
	l.vm2.Route("default", "via", "10.0.10.1")
	l.vm3.Route("default", "via", "10.0.20.1")
	return l
}

// reach waits until the VMs reach each other, bridged and by the L3VNI.
func (l *evpnLab) reach() {
	l.t.Helper()
	for _, x := range []struct {
		from *netns.Host
		to   string
		ttl  int
	}{{l.vm1, "10.0.10.12", 64}, {l.vm1, "10.0.20.13", 62}, {l.vm3, "10.0.10.11", 62}, {l.vm3, "10.0.10.12", 63}} {
		x.from.Until("ping "+x.to, func() bool {
			_, err := x.from.Try(l.t.Context(), "ping", "-n", "-c", "1", "-W", "1", x.to)
			return err == nil
		})
		if ttl := x.from.PingTTL(x.to); ttl != x.ttl {
			l.t.Errorf("%s to %s: TTL %d, want %d", x.from.Name, x.to, ttl, x.ttl)
		}
	}
}

// sessions waits until a leaf has so many.
func (l *evpnLab) sessions(i, n int) (e api.EVPN) {
	l.t.Helper()
	l.leaves[i].Until(fmt.Sprintf("%d sessions", n), func() (ok bool) {
		var err error
		e, err = l.c[i].EVPN(l.t.Context())
		return err == nil && e.Established == n
	})
	return e
}

// The sample evpn: two leaves with two route reflectors. One reflector is lost under traffic, settings change under traffic, and the
// section goes and comes back.
func TestEVPN(t *testing.T) {
	t.Parallel()
	l := newEVPNLab(t, "evpn", "reflector.conf", 11)
	l.reach()
	l.leaves[0].Until("routes", func() bool {
		e, err := l.c[0].EVPN(t.Context())
		return err == nil && e.Routes >= 6 && e.Advertised >= 4
	})
	if e := l.sessions(0, 2); e.State != "running" || e.Peers != 2 || e.AS != 65000 || e.RouterID != "192.0.2.11" || e.LeftOut["mac"] != 0 {
		t.Errorf("%+v", e)
	}
	mac := l.vm2.MAC("eth0")
	for words, want := range map[string]string{
		"evpn":               `state +running since [-\d: ]+\nerror +-\nAS +65000\nrouter ID +192\.0\.2\.11\npeers +2\nsessions +2\nroutes of this node +\d+\nroutes of peers +\d+\n`,
		"evpn peers":         `192\.0\.2\.1 +65000 +established +\S+ +9s +- +\d+ +\d+ +\d+ +-\n192\.0\.2\.2 `,
		"evpn vni":           `10 +192\.0\.2\.11 +192\.0\.2\.11:\d+ +red +1 +[1-9] +1\n`,
		"evpn routes type 2": `2 +10 +` + mac + ` 10\.0\.10\.12 +192\.0\.2\.12 +192\.0\.2\.1 +65000:10,65000:5000 +L3VNI 5000, router 02:00:00:dd:00:02\n`,
		"evpn routes type 5 vni 5000 peer 192.0.2.2": `^TYPE.*\n5 +5000 +10\.0\.10\.0/24 +192\.0\.2\.12 +192\.0\.2\.2 .*\n5 +5000 +10\.0\.20\.0/24 .*\n5 +5000 +2001:db8:10::/64 .*\n5 +5000 +2001:db8:20::/64 .*\n$`,
		"evpn duplicates": `^VNI +MAC +STAYS-AT\n$`,
	} {
		is, got := regexp.MustCompile(want), l.leaves[0].ctl(words)
		for end := time.Now().Add(netns.Timeout / 2); !is.MatchString(got) && time.Now().Before(end); got = l.leaves[0].ctl(words) {
			time.Sleep(100 * time.Millisecond) // a route is on its way
		}
		if !is.MatchString(got) {
			t.Errorf("vxsctl %s: want %s\n%s", words, want, got)
		}
	}
	if e := l.leaves[0].entry(10, mac); e.Dest != "192.0.2.12:4789" || e.Origin != "control" {
		t.Errorf("%+v", e)
	}
	for words, want := range map[string]string{
		"evpn clear " + mac + " vni 10": "mac " + mac + ": has not moved too often in vni 10",
		"evpn clear " + mac:             "evpn: clear: requires vni, 0 to 16777215",
		"evpn clear x vni 10":           `evpn: clear: "x": must be a MAC such as 02:00:00:00:00:01`,
		"evpn routes type 6":            `evpn: type "6": must be 1 to 5`,
		"evpn routes dev x":             `evpn: unexpected "dev"; allowed are type, vni, peer`,
		"evpn sessions":                 `evpn: "sessions": must be one of show, peers, vni, es, routes, duplicates, clear`,
		"evpn routes peer leaf2":        `evpn: peer "leaf2": must be the address of a peer such as 10.0.0.2`,
	} {
		if out, err := l.leaves[0].tryCtl(words); err == nil || !strings.HasPrefix(out, "vxsctl: "+want) {
			t.Errorf("vxsctl %s: %v\n%s", words, err, out)
		}
	}

	// Under traffic: a reflector is killed, and a reload brings a peer and other settings.
	ended := make(chan string)
	go func() {
		out, _ := l.vm1.Try(t.Context(), "ping", "-n", "-i", "0.02", "-c", "400", "-W", "1", "10.0.20.13")
		ended <- out
	}()
	l.frr[0].Kill("bgpd")
	l.sessions(0, 1)
	peers, err := l.c[0].EVPNPeers(t.Context())
	must(t, err)
	text := sample(t, "evpn/leaf1.json")
	with := strings.Replace(text, `"peers": [`, `"vrfs": [{"name": "red", "accept": ["10.0.0.0/8"]}], "mobility": {"moves": 9}, "peers": [{"address": "192.0.2.9", "as": 65000}, `, 1)
	l.leaves[0].write(strings.Replace(with, `"routerID": "192.0.2.11"`, `"routerID": "192.0.2.11x"`, 1))
	if out, err := l.leaves[0].tryCtl("reload"); err == nil || !strings.Contains(out, `evpn.routerID: "192.0.2.11x": must be an IP address`) {
		t.Error(out)
	}
	l.leaves[0].write(with)
	l.leaves[0].ctl("reload")
	l.leaves[0].Until("the VRF to accept less", func() bool {
		e, _ := l.c[0].EVPN(t.Context())
		return e.LeftOut["not-accepted"] > 0 && e.Peers == 3
	})
	after, err := l.c[0].EVPNPeers(t.Context())
	must(t, err)
	same := func(p api.EVPNPeer) bool {
		return p.Address == "192.0.2.2" && p.State == "established" && p.Since.Equal(*peers[1].Since)
	}
	if !slices.ContainsFunc(after, same) {
		t.Errorf("%+v, before %+v", after, peers)
	}
	if out := <-ended; !strings.Contains(out, " 0% packet loss") {
		t.Error(out)
	}

	// Without the section all its rows are gone, with it they are back.
	without := regexp.MustCompile(`(?s)  "evpn": .*?\n  },\n`).ReplaceAllString(text, "")
	l.leaves[0].write(without)
	l.leaves[0].ctl("reload")
	if e := l.leaves[0].entry(10, mac); e.MAC != "" {
		t.Errorf("%+v without the section", e)
	}
	if out, err := l.leaves[0].tryCtl("evpn"); err == nil || !strings.Contains(out, "the configuration has no section evpn") {
		t.Error(out)
	}
	l.leaves[0].write(text)
	l.leaves[0].ctl("reload")
	l.sessions(0, 1)
	l.reach()

	// A reflector says more than it may. FRR 8.4 keeps a session that comes the moment the one before has ended, and says nothing in it.
	l.leaves[0].write(without)
	l.leaves[0].ctl("reload")
	l.leaves[0].Until("the reflector to have no session", func() bool {
		return !strings.Contains(l.frr[1].Do("show bgp l2vpn evpn summary"), "192.0.2.11 ")
	})
	l.leaves[0].write(strings.ReplaceAll(text, `"address": "192.0.2.2"`, `"maxRoutes": 1, "address": "192.0.2.2"`))
	l.leaves[0].ctl("reload")
	l.leaves[0].Until("routes left out", func() bool {
		return regexp.MustCompile(`192\.0\.2\.2 .* 1 \(\d+ left out\) `).MatchString(l.leaves[0].ctl("evpn peers"))
	})

	// Another AS needs new sessions, which the reflector refuses.
	l.leaves[0].write(strings.Replace(text, `"as": 65000, "routerID"`, `"as": 65009, "routerID"`, 1))
	l.leaves[0].ctl("reload")
	l.leaves[0].Until("the session to be refused", func() bool {
		e, err := l.c[0].EVPN(t.Context())
		return err == nil && e.AS == 65009 && e.Established == 0 && e.Routes == 0
	})
	l.leaves[1].Until("our routes to go", func() bool {
		list, err := l.c[1].EVPNRoutes(t.Context(), api.Query{"peer": "192.0.2.2"})
		return err == nil && len(list) == 0
	})
}

// The sample evpn-ebgp: leaves and spines with an AS each.
func TestEVPNExternal(t *testing.T) {
	t.Parallel()
	l := newEVPNLab(t, "evpn-ebgp", "spine.conf", 21)
	l.reach()
	l.sessions(0, 2)
	l.sessions(1, 2)
	var list []api.EVPNRoute
	l.leaves[0].Until("leaf2's VTEP from both spines", func() bool {
		var err error
		list, err = l.c[0].EVPNRoutes(t.Context(), api.Query{"type": "3", "vni": "20"})
		return err == nil && len(list) == 2
	})
	if list[0].VTEP != "192.0.2.22" || list[0].Targets[0] != "65022:20" || list[0].LeftOut != "target" {
		t.Errorf("%+v", list)
	}
}

// A host that appears at both leaves in turns is a duplicate, until it is cleared.
func TestEVPNDuplicate(t *testing.T) {
	t.Parallel()
	l := newEVPNLab(t, "evpn", "reflector.conf", 11)
	l.reach()
	mac := "02:00:00:00:00:99"
	l.vm1.Quiet()
	l.vm2.Quiet()
	speak := func(vm *netns.Host) {
		vm.IP("link", "set", "eth0", "address", mac)
		vm.Try(t.Context(), "arping", "-c", "1", "-U", "-I", "eth0", "10.0.10.77")
		vm.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "10.0.10.1")
	}
	at := -1 // the leaf that has counted the moves first
	var list []api.EVPNDuplicate
	for i := 0; i < 40 && at < 0; i++ {
		speak([]*netns.Host{l.vm1, l.vm2}[i%2])
		time.Sleep(50 * time.Millisecond)
		for k, c := range l.c {
			var err error
			if list, err = c.EVPNDuplicates(t.Context()); err == nil && len(list) > 0 {
				at = k
				break
			}
		}
	}
	if len(list) != 1 || list[0].MAC != mac || list[0].VNI != 10 {
		t.Fatalf("%+v", list)
	}
	if got := l.leaves[at].ctl("evpn duplicates"); !strings.Contains(got, "10   "+mac) {
		t.Error(got)
	}
	l.leaves[at].ctl("evpn clear " + mac + " vni 10")
	if list, err := l.c[at].EVPNDuplicates(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}
