package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// wantAll ends the pinging: nothing may be missing. ping may be interrupted between a
// question and its answer.
func wantAll(t *testing.T, what string, stop func() (sent, got int)) {
	t.Helper()
	sent, got := stop()
	t.Logf("%s: %d of %d", what, got, sent)
	if got < sent-1 || sent < 20 {
		t.Errorf("%s: of %d pings %d were answered", what, sent, got)
	}
}

// Hosts behind two nodes ping, and vxsctl shows what the nodes have learned.
func TestTwoNodes(t *testing.T) {
	p := newPair(t)
	if want := "ready segments=1 ports=1 tunnels=1 socket=" + p.a.socket + "\n"; p.a.proc.Output() != want {
		t.Errorf("%q, want %q", p.a.proc.Output(), want)
	}
	if m := modeAt(t, p.a.socket); m != os.ModeSocket|0o600 {
		t.Errorf("the socket is %v", m)
	}
	monitor := p.a.watch("monitor")
	fake.Until(t, "the monitor has begun", func() bool {
		p.a.ctl("fdb replace 02:00:00:00:00:99 dst 10.0.0.9 vni 100")
		p.a.ctl("fdb del 02:00:00:00:00:99 vni 100")
		return strings.Contains(monitor.Output(), "row-removed proto vxsctl row mac 02:00:00:00:00:99")
	})
	p.ga.Ping("192.168.7.2", 3)

	near, far := p.ga.MAC("eth0"), p.gb.MAC("eth0")
	if e := p.a.entry(100, near); e.Dest != "tap0" || e.Dev != "tap0" || e.Origin != "learned" {
		t.Errorf("%s: %+v", near, e)
	}
	if e := p.a.entry(100, far); e.Dest != "10.0.0.2:4789" || e.Dev != "vx" || e.Origin != "learned" {
		t.Errorf("%s: %+v", far, e)
	}
	monitor.Want("mac-learned vni 100 mac " + near + " dest tap0")
	monitor.Want("mac-learned vni 100 mac " + far + " dest 10.0.0.2:4789")
	for words, want := range map[string]string{
		"fdb show dev tap0": "100 +" + near + " +tap0 +tap0 +- +learned +- +[0-9]+s",
		"vtep":              `vx +vxlan +10\.0\.0\.1:4789 +10\.0\.0\.2:4789 +listed +1464 +[1-9]\d* +[1-9]`,
		"port":              `tap0 +tap +1464 +100 +[1-9]`,
		"flood":             `100 +- +vx +10\.0\.0\.2:4789`,
		"stats":             `from tunnels +[1-9]`,
		"config":            `"maxMACs": 8192`,
	} {
		if got := p.a.ctl(words); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("vxsctl %s: want %s\n%s", words, want, got)
		}
	}
	if got := p.a.ctl("fdb show dev tap0"); strings.Contains(got, far) {
		t.Errorf("%s is not on tap0\n%s", far, got)
	}

	// An entry that points elsewhere stops the ping, without it the host is found again.
	p.a.ctl("fdb replace " + far + " dst 10.0.0.9 vni 100")
	if e := p.a.entry(100, far); e.Dest != "10.0.0.9:4789" || e.Origin != "control" {
		t.Errorf("%+v", e)
	}
	if out, err := p.ga.Try(t.Context(), "ping", "-c", "2", "-i", "0.2", "-W", "1", "192.168.7.2"); err == nil {
		t.Errorf("answered\n%s", out)
	}
	p.a.ctl("fdb del " + far + " vni 100")
	p.ga.Ping("192.168.7.2", 1)

	// SIGUSR1, and the end.
	p.a.proc.Signal(syscall.SIGUSR1)
	p.a.proc.Want(`stats {"rx":{"frames":`)
	if err := p.a.proc.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(p.a.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	if err := monitor.Wait(); err == nil || !strings.Contains(monitor.Output(), "the node closed the stream") {
		t.Errorf("monitor: %v\n%s", err, monitor.Output())
	}
	if out, err := p.a.tryCtl("fdb"); err == nil || !strings.Contains(out, "no node listens on "+p.a.socket) {
		t.Errorf("%v %s", err, out)
	}
}

// A reload under traffic loses nothing of what has not changed, whether it adds, takes away
// or is wrong.
func TestReloadUnderTraffic(t *testing.T) {
	p := newPair(t)
	good := configOf("10.0.0.1", "10.0.0.2")
	more := strings.Replace(good, `"segments": [`, `"segments": [{"vni": 200, "tunnel": "vx", "flood": ["10.0.0.2"]}, `, 1)
	p.ga.Ping("192.168.7.2", 1)
	p.a.ctl("fdb add 02:00:00:00:00:77 dst 10.0.0.2 vni 100")

	reloads := 0
	hup := func(text string) {
		t.Helper()
		p.a.write(text)
		p.a.proc.Signal(syscall.SIGHUP)
		reloads++
		fake.Until(t, "reloaded", func() bool { return strings.Count(p.a.proc.Output(), "reloaded\n") == reloads })
		time.Sleep(50 * time.Millisecond) // of traffic between two
	}
	stop := p.ga.Pinging("192.168.7.2")
	for range 5 {
		hup(more)
		if got := p.a.ctl("flood"); !strings.Contains(got, "200 ") {
			t.Errorf("%s", got)
		}
		hup(good)
	}
	wantAll(t, "reloads", stop)
	if e := p.a.entry(100, "02:00:00:00:00:77"); e.Dest != "10.0.0.2:4789" {
		t.Errorf("vxsctl's entry: %+v", e)
	}

	near := p.ga.MAC("eth0")
	stop = p.ga.Pinging("192.168.7.2")
	for _, c := range []struct{ text, want string }{
		{strings.Replace(good, `"vni": 100`, `"vni": 100, "colour": "red"`, 1), p.a.file + ":4:29: segments[0].colour: unknown key"},
		{good[:len(good)-2], "unexpected end of the file"},
		{strings.Replace(more, `"ports": [`, `"ports": [{"name": "nope0", "type": "packet"}, `, 1), `vxswitchd: port "nope0": `},
		{strings.Replace(strings.Replace(good, `"vni": 100`, `"vni": 101`, 1), `"ports": [`, `"ports": [{"name": "nope0", "type": "packet"}, `, 1), `vxswitchd: port "nope0": `},
		{strings.Replace(good, `"tunnels": [`, `"tunnels": [{"name": "x", "local": "10.0.0.77"}, `, 1), `must be an address of this host`},
	} {
		before := len(p.a.proc.Output())
		p.a.write(c.text)
		p.a.proc.Signal(syscall.SIGHUP)
		fake.Until(t, c.want, func() bool { return strings.Contains(p.a.proc.Output()[before:], c.want) })
		time.Sleep(50 * time.Millisecond)
		if said := p.a.proc.Output()[before:]; strings.Count(said, "\n") != 1 {
			t.Errorf("%s", said)
		}
		if out, err := p.a.tryCtl("reload"); err == nil || !strings.Contains(out, strings.TrimPrefix(c.want, "vxswitchd: ")) {
			t.Errorf("vxsctl reload: %v\n%s", err, out)
		}
		if e := p.a.entry(100, near); e.Dest != "tap0" {
			t.Errorf("%+v", e)
		}
		if got := p.a.ctl("flood"); strings.Contains(got, "200 ") {
			t.Errorf("%s", got)
		}
	}
	wantAll(t, "wrong reloads", stop)
}

// What passes is traced, captured and counted.
func TestWatching(t *testing.T) {
	p := newPair(t)
	p.ga.Ping("192.168.7.2", 1)
	near, far := p.ga.MAC("eth0"), p.gb.MAC("eth0")

	trace := p.a.watch("trace mac " + near)
	file := filepath.Join(filepath.Dir(p.a.file), "x.pcapng")
	capture := p.a.watch("capture -w " + file)
	capture.Want("capturing on all ports and tunnels to ")
	time.Sleep(300 * time.Millisecond) // for the trace to begin
	p.ga.Ping("192.168.7.2", 3)
	trace.Want(fmt.Sprintf("vni 100 from tap0 %s > %s type 0800 len 98: forward 10.0.0.2:4789", near, far))
	trace.Want(fmt.Sprintf("vni 100 from 10.0.0.2:4789 %s > %s type 0800 len 98: forward tap0", far, near))
	if out, err := p.a.tryCtl("trace"); err == nil || !strings.Contains(out, "another trace is running") {
		t.Errorf("%v %s", err, out)
	}
	capture.Signal(syscall.SIGINT)
	if err := capture.Wait(); err != nil {
		t.Errorf("capture: %v", err)
	}
	tshark := func(filter string) int {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "tshark", "-n", "-r", file, "-Y", filter).CombinedOutput()
		if err != nil {
			t.Fatalf("tshark: %v\n%s", err, out)
		}
		return strings.Count(string(out), " Echo (ping) request ")
	}
	if n := tshark("vxlan.vni == 100 && icmp.type == 8"); n != 3 {
		t.Errorf("tshark found %d questions in the tunnel", n)
	}
	if n := tshark("!vxlan && icmp.type == 8"); n != 3 {
		t.Errorf("tshark found %d questions on the port", n)
	}

	// A VLAN tag that nobody wants is a drop, and a verdict.
	trace.Signal(syscall.SIGINT)
	if err := trace.Wait(); err != nil {
		t.Errorf("trace: %v", err)
	}
	trace = p.a.watch("trace dest tap0")
	time.Sleep(300 * time.Millisecond)
	tagged := "\x02\x00\x00\x00\x00\x99\x02\x00\x00\x00\x00\x98\x81\x00\x00\x07\x08\x00" + strings.Repeat("x", 46)
	p.ga.Inject("eth0", []byte(tagged))
	trace.Want("type 8100 len 64: drop unknown-vlan")
	fake.Until(t, "the drop", func() bool {
		return regexp.MustCompile(`tap0 +rx +unknown-vlan +1\n`).MatchString(p.a.ctl("drops"))
	})
	top := p.a.watch("top -interval 200ms")
	fake.Until(t, "top", func() bool {
		p.ga.Inject("eth0", []byte(tagged))
		return regexp.MustCompile(`(?s)tap0 +tap +\d.*tap0 +rx +unknown-vlan +\d+ +\d+\n`).MatchString(top.Output())
	})
	top.Signal(syscall.SIGINT)
	if err := top.Wait(); err != nil {
		t.Errorf("top: %v", err)
	}
}

// A port whose device is gone is listed as down, with its error, until the device is there again; then traffic flows by itself.
func TestDeviceDeleted(t *testing.T) {
	p := newPair(t)
	p.ga.Ping("192.168.7.2", 1)
	for range 2 {
		ping := p.ga.Start("ping", "-n", "-q", "-i", "0.01", "192.168.7.2")
		p.a.IP("link", "del", "tap0")
		down := regexp.MustCompile(`(?m)^tap0 +tap +- +100 +-.* +down +port "?.*tap0"?: .*there is no persistent device with this name`)
		fake.Until(t, "tap0 is listed as down", func() bool { return down.MatchString(p.a.ctl("port")) })
		p.a.ctl("reload") // is no error, and does not make the device of somebody else
		if got := p.a.ctl("port"); !down.MatchString(got) {
			t.Errorf("%s", got)
		}
		p.a.IP("tuntap", "add", "tap0", "mode", "tap")
		p.a.IP("link", "set", "tap0", "master", "br0", "up")
		p.a.carries()
		p.ga.Ping("192.168.7.2", 1)
		if got := p.a.ctl("port"); !regexp.MustCompile(`(?m)^tap0 .* up +-$`).MatchString(got) {
			t.Errorf("%s", got)
		}
		ping.Stop()
	}
	for what, times := range map[string]int{`msg="a port is down" port=tap0 err=`: 2, `msg="a port is back" port=tap0 after=`: 2} {
		if n := strings.Count(p.a.proc.Output(), what); n != times {
			t.Errorf("%d times %s:\n%s", n, what, p.a.proc.Output())
		}
	}
}

// A tunnel whose interface is gone is listed as down, with its error and its segments, until a change opens it again.
func TestTunnelDeviceDeleted(t *testing.T) {
	n := netns.New(t)
	a := newSystem(t, n, "a")
	veth := []string{"link", "add", "under", "type", "veth", "peer", "name", "wire"}
	a.IP(veth...)
	a.IP("link", "set", "under", "up")
	a.write(strings.Replace(configOf("10.0.0.1", "10.0.0.2"), `"10.0.0.1"`, `"10.0.0.1", "underlay": "packet", "bind": "under", "prefix": "10.0.0.0/24"`, 1))
	a.run()
	a.IP("link", "del", "under")
	down := regexp.MustCompile(`(?m)^vx +vxlan +- +100 +-.* +down +afpacket: interface "under": it was deleted`)
	fake.Until(t, "the tunnel is listed as down", func() bool { return down.MatchString(a.ctl("port")) })
	a.IP(veth...)
	a.IP("link", "set", "under", "up")
	a.ctl("reload")
	if got := a.ctl("port"); !regexp.MustCompile(`(?m)^vx .* up +-$`).MatchString(got) {
		t.Errorf("%s", got)
	}
}

// Clients that read nothing are let go, those that ask on and on wait, and frames do not wait for them.
func TestStalledClients(t *testing.T) {
	p := newPair(t)
	p.ga.Ping("192.168.7.2", 1)
	for _, path := range []string{"monitor", "monitor", "trace", "capture"} {
		c, err := net.Dial("unix", p.a.socket)
		must(t, err)
		defer c.Close()
		fmt.Fprintf(c, "GET /v1/%s HTTP/1.1\r\nHost: node\r\n\r\n", path)
		if status, err := bufio.NewReader(io.LimitReader(c, 15)).ReadString('K'); err != nil || status != "HTTP/1.1 200 OK" {
			t.Fatalf("%s: %q %v", path, status, err)
		}
	}
	var hurry sync.WaitGroup
	quiet := make(chan struct{})
	for range 3 { // and some that ask as fast as they can
		hurry.Go(func() {
			for {
				select {
				case <-quiet:
					return
				default:
				}
				if c, err := net.Dial("unix", p.a.socket); err == nil {
					c.SetDeadline(time.Now().Add(time.Second))
					io.WriteString(c, "GET /v1/stats HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
					io.Copy(io.Discard, c)
					c.Close()
				}
			}
		})
	}
	defer hurry.Wait()
	defer close(quiet)
	stop := p.ga.Pinging("192.168.7.2")
	flood, end := context.WithTimeout(t.Context(), 9*time.Second)
	defer end()
	p.ga.Try(flood, "ping", "-f", "-s", "1400", "-w", "8", "192.168.7.2")
	wantAll(t, "beside stalled clients", stop)
	fake.Until(t, "the trace and the capture to be free", func() bool {
		for _, words := range []string{"trace", "capture -w /dev/null"} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			c := exec.CommandContext(ctx, filepath.Join(p.a.bin, "vxsctl"), append([]string{"-socket", p.a.socket}, strings.Fields(words)...)...)
			c.Cancel = func() error { return c.Process.Signal(syscall.SIGINT) }
			out, _ := c.CombinedOutput()
			cancel()
			if strings.Contains(string(out), "is running") || strings.Contains(string(out), "are running") {
				return false
			}
		}
		return true
	})
}

// A node that is killed leaves a socket and persistent TAPs; the next one takes both over, and
// traffic flows again within a second.
func TestKilled(t *testing.T) {
	p := newPair(t)
	p.ga.Ping("192.168.7.2", 1)
	p.a.proc.Signal(syscall.SIGKILL)
	p.a.proc.Wait()
	if m := modeAt(t, p.a.socket); m&os.ModeSocket == 0 {
		t.Errorf("%v", m)
	}
	ping := p.ga.Start("ping", "-D", "-i", "0.02", "192.168.7.2")
	time.Sleep(200 * time.Millisecond)
	if strings.Contains(ping.Output(), "bytes from") {
		t.Fatal("answered without a node")
	}
	begun := time.Now()
	p.a.run()
	ping.Want("bytes from")
	took := time.Since(begun)
	t.Logf("answered %v after the start", took)
	if took > time.Second {
		t.Errorf("answered %v after the start", took)
	}
	if m := modeAt(t, p.a.socket); m != os.ModeSocket|0o600 {
		t.Errorf("the socket is %v", m)
	}
	p.a.ctl("stats")
	p.a.IP("link", "show", "tap0")
	if err := p.a.proc.Stop(); err != nil {
		t.Error(err)
	}
	p.a.IP("link", "show", "tap0") // a persistent TAP stays
}
