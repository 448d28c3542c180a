package daemon

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

// A process that ends, in whichever way, leaves the device with its routes; the next one takes them with the same subnet and
// MAC, no route goes meanwhile, and pods are reached again as soon as it runs, however long they have tried.
func TestRestart(t *testing.T) {
	const network = `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`
	l := flanneldlab.New(t, network)
	b := l.Theirs(2)
	p := start(t, l, 11)
	_, subnet := p.read(t)
	pod := l.Pod(p.host, 11, subnet.IPv4, subnet.IPv6)
	reach(t, pod.Host, b.Pod.IPv4.String())
	reach(t, pod.Host, b.Pod.IPv6.String())
	state := func() string {
		return p.host.MAC("flannel.1") + "\n" + p.host.Run("ip", "route", "show", "proto", "118") + p.host.Run("ip", "-6", "route", "show", "proto", "118") +
			strings.Join(strings.Fields(p.host.Run("ip", "-brief", "address", "show", "dev", "flannel.1", "scope", "global"))[2:], " ")
	}
	before := state()
	for name, c := range map[string]struct {
		signal syscall.Signal
		away   time.Duration
	}{"crash": {syscall.SIGKILL, 0}, "crash, away for long": {syscall.SIGKILL, 1700 * time.Millisecond}, "stop": {syscall.SIGTERM, 300 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			pings := map[string]*netns.Proc{}
			for _, x := range [][2]*flanneldlab.Pod{{pod, b.Pod}, {b.Pod, pod}} {
				for _, to := range []string{x[1].IPv4.String(), x[1].IPv6.String()} {
					g := x[0].Start("ping", "-n", "-D", "-i", "0.01", to)
					g.Want("bytes from")
					pings[to] = g
				}
			}
			routes := p.host.Start("ip", "monitor", "route")
			p.host.Until("the monitor listens", func() bool {
				p.host.Run("ip", "route", "replace", "blackhole", "203.0.113.1/32")
				p.host.Run("ip", "route", "del", "blackhole", "203.0.113.1/32")
				return strings.Contains(routes.Output(), "203.0.113.1")
			})
			p.Signal(c.signal)
			if err := p.Wait(); c.signal == syscall.SIGTERM && err != nil {
				t.Errorf("%v", err)
			}
			time.Sleep(c.away)
			p.host.Until("the device has no carrier", func() bool { return strings.Contains(p.host.Run("ip", "link", "show", "flannel.1"), "NO-CARRIER") })
			if got := strings.ReplaceAll(state(), " linkdown", ""); got != before {
				t.Errorf("while it is away\n%swant\n%s", got, before)
			}
			begun := time.Now()
			p.start(t)
			up := time.Since(begun)
			for to, g := range pings {
				var back time.Duration
				g.Want("bytes from")
				p.host.Until(to+" answers", func() bool { back = answered(g.Output(), begun); return back > 0 })
				t.Logf("%s answers %v after the start", to, back.Round(time.Millisecond))
				if back > up+700*time.Millisecond { // a second is how long the kernel waits before it asks for a neighbour again
					t.Errorf("%s answers %v after the start, ready after %v", to, back, up)
				}
			}
			t.Logf("ready %v after the start", up.Round(time.Millisecond))
			for _, g := range pings {
				g.Stop()
			}
			if got := state(); got != before {
				t.Errorf("after the start\n%swant\n%s", got, before)
			}
			p.host.IP("route", "replace", "blackhole", "203.0.113.2/32") // the last one
			routes.Want("blackhole 203.0.113.2")
			p.host.IP("route", "del", "blackhole", "203.0.113.2/32")
			routes.Stop()
			for line := range strings.Lines(routes.Output()) {
				if strings.Contains(line, "Deleted") && strings.Contains(line, "proto 118") {
					t.Errorf("a route went: %s", line)
				}
			}
		})
	}
}

var stamped = regexp.MustCompile(`(?m)^\[(\d+)\.(\d{6})\] \d+ bytes from .* ttl=`)

// answered returns how long after begun ping has seen its first answer, 0 for never.
func answered(output string, begun time.Time) time.Duration {
	for _, m := range stamped.FindAllStringSubmatch(output, -1) {
		s, _ := strconv.ParseInt(m[1], 10, 64)
		us, _ := strconv.ParseInt(m[2], 10, 64)
		if d := time.Unix(s, us*1000).Sub(begun); d > 0 {
			return d
		}
	}
	return 0
}

// With the backend udp, the same goes for the TUN and its one route.
func TestRestartUDP(t *testing.T) {
	l := flanneldlab.New(t, `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "udp"}}`)
	b := l.Theirs(2)
	p := start(t, l, 11)
	text, subnet := p.read(t)
	if !strings.Contains(text, "FLANNEL_MTU=1472\n") {
		t.Error(text)
	}
	pod := l.Pod(p.host, 11, subnet.IPv4)
	reach(t, pod.Host, b.Pod.IPv4.String())
	p.Kill()
	if got := p.host.Run("ip", "route", "show", "dev", "flannel0"); !strings.HasPrefix(got, "10.3.0.0/16 proto 118 scope link src "+subnet.IPv4.Addr().String()) {
		t.Errorf("left %q", got)
	}
	p.start(t)
	if _, again := p.read(t); again != subnet {
		t.Errorf("%v, before %v", again, subnet)
	}
	reach(t, b.Pod.Host, pod.IPv4.String())
}

// Routes that a former process has left on the link, since it sent without the tunnel, give way to those through it.
func TestRestartWithoutDirect(t *testing.T) {
	l := flanneldlab.New(t, `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "vxlan", "DirectRouting": true}}`)
	b := l.Theirs(2)
	p := start(t, l, 11)
	_, subnet := p.read(t)
	pod := l.Pod(p.host, 11, subnet.IPv4)
	reach(t, pod.Host, b.Pod.IPv4.String())
	way := func() string { return p.host.Run("ip", "route", "show", "exact", b.Subnets(t)[0].String()) }
	if got := way(); !strings.Contains(got, "dev eth0") {
		t.Errorf("with DirectRouting %s", got)
	}
	p.Kill()
	l.Etcd.Ctl(t, "put", flanneldlab.Prefix+"/config", `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`)
	p.start(t)
	if got := way(); !strings.Contains(got, "dev flannel.1") || strings.Contains(got, "eth0") {
		t.Errorf("without DirectRouting %s", got)
	}
	reach(t, pod.Host, b.Pod.IPv4.String())
}

// A device that a former lease has left loses its address and routes; one of a lease that is lost is deleted.
func TestLeftByAnotherLease(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	b := l.Theirs(2)
	p := start(t, l, 11)
	_, subnet := p.read(t)
	p.Kill()
	l.Etcd.Ctl(t, "del", flanneldlab.Prefix+"/subnets/"+subnet.Key())
	l.Etcd.Ctl(t, "put", flanneldlab.Prefix+"/subnets/"+subnet.Key(), `{"PublicIP":"192.0.2.77","BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"02:00:00:00:00:77"}}`)
	p.host.IP("route", "add", "10.3.250.0/24", "via", "10.3.250.0", "dev", "flannel.1", "onlink", "proto", "118")
	p.start(t)
	_, now := p.read(t)
	if now == subnet {
		t.Fatalf("%v is somebody else's", now)
	}
	if got, want := p.host.Run("ip", "-o", "-4", "address", "show", "dev", "flannel.1"), fmt.Sprint(now.IPv4.Addr(), "/32"); !strings.Contains(got, want) || strings.Contains(got, subnet.IPv4.Addr().String()+"/") {
		t.Errorf("addresses %s, want %s", got, want)
	}
	routes := p.host.Run("ip", "route", "show", "proto", "118")
	if strings.Contains(routes, "10.3.250.0") || !strings.Contains(routes, subnet.IPv4.String()) || !strings.Contains(routes, b.Subnets(t)[0].String()) {
		t.Errorf("routes %s", routes)
	}
	l.Etcd.Ctl(t, "del", flanneldlab.Prefix+"/subnets/"+now.Key())
	p.Want("the lease is lost")
	p.Wait()
	if got := p.host.Run("ip", "-o", "link", "show", "type", "tun") + p.host.Run("ip", "route", "show", "proto", "118"); got != "" {
		t.Errorf("left: %s", got)
	}
}

// When the network gets another VNI or backend, the next process deletes the device of the former one, up or down, and nobody
// else's: not one that is down and that a process has open.
func TestLeftByAnotherNetwork(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	p := start(t, l, 11)
	p.host.IP("tuntap", "add", "flannel.x", "mode", "tap")
	p.host.IP("link", "add", "flannel.9", "type", "bridge")
	open := check.Must(port.OpenTAP("flannel.8", &port.DeviceConfig{Namespace: p.host.NS, Persistent: true}))(t)
	defer open.Close()
	p.host.IP("link", "set", "flannel.8", "down")
	devices := func() (list []string) {
		for line := range strings.Lines(p.host.Run("ip", "-brief", "link", "show")) {
			if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "flannel") {
				list = append(list, name)
			}
		}
		slices.Sort(list)
		return list
	}
	for _, c := range []struct {
		backend string
		down    string // a device that somebody takes down before
		want    []string
	}{
		{`"Type": "vxlan", "VNI": 7`, "", []string{"flannel.7", "flannel.8", "flannel.9", "flannel.x"}},
		{`"Type": "udp"`, "flannel.7", []string{"flannel.8", "flannel.9", "flannel.x", "flannel0"}},
		{`"Type": "host-gw"`, "flannel0", []string{"flannel.8", "flannel.9", "flannel.x"}},
		{`"Type": "vxlan"`, "", []string{"flannel.1", "flannel.8", "flannel.9", "flannel.x"}},
	} {
		p.Kill()
		if c.down != "" {
			p.host.IP("link", "set", c.down, "down")
		}
		l.Etcd.Ctl(t, "put", flanneldlab.Prefix+"/config", `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {`+c.backend+`}}`)
		p.start(t)
		if got := devices(); !slices.Equal(got, c.want) {
			t.Errorf("backend %s: %q, want %q", c.backend, got, c.want)
		}
	}
}
