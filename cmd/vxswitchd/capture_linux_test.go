package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// tcpdumped returns the lines that tcpdump prints of a file, without times.
func tcpdumped(t *testing.T, file string, args ...string) []string {
	t.Helper()
	var errs bytes.Buffer
	c := exec.CommandContext(t.Context(), "tcpdump", append([]string{"-n", "-t", "-e", "-r", file}, args...)...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", c, err, errs.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// ends interrupts a capture, which must end well, and returns what it said.
func ends(t *testing.T, c *netns.Proc) string {
	t.Helper()
	c.Signal(syscall.SIGINT)
	if err := c.Wait(); err != nil {
		t.Errorf("capture: %v\n%s", err, c.Output())
	}
	return c.Output()
}

// What is captured on a port, a tunnel and a segment is what tcpdump's filter takes of everything, and tcpdump reads it.
func TestCaptureLikeTcpdump(t *testing.T) {
	p := newPair(t)
	p.ga.Ping("192.168.7.2", 1)
	dir := filepath.Dir(p.a.file)
	begin := func(name, words string) (*netns.Proc, string) {
		t.Helper()
		file := filepath.Join(dir, name)
		c := p.a.watch("capture -w " + file + " " + words)
		c.Want("capturing on ")
		return c, file
	}
	places := []string{"port tap0 ", "vni 100 "}
	whole, plain := map[string]string{}, map[string]*netns.Proc{}
	for i, place := range places {
		plain[place], whole[place] = begin(fmt.Sprint("whole", i), place)
	}
	one, oneFile := begin("one.pcapng", "vni 100 icmp and src host 192.168.7.1 and greater 500")
	p.ga.Ping("192.168.7.2", 2)
	if out, err := p.ga.Try(t.Context(), "ping", "-c", "3", "-i", "0.2", "-s", "600", "192.168.7.2"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.ga.Try(t.Context(), "timeout", "1", "bash", "-c", "echo x >/dev/tcp/192.168.7.2/99") // refused
	if said := ends(t, one); !strings.HasSuffix(said, "6 packets captured\n6 packets received by filter\n0 packets dropped\n") {
		t.Errorf("%s", said)
	}
	for _, place := range places {
		if said := ends(t, plain[place]); !strings.HasSuffix(said, "\n0 packets dropped\n") {
			t.Errorf("%s", said)
		}
	}
	got := tcpdumped(t, oneFile)
	if want := tcpdumped(t, whole["vni 100 "], "icmp and src host 192.168.7.1 and greater 500"); !slices.Equal(got, want) || len(want) != 6 {
		t.Errorf("%q\nwant %q", got, want)
	}
	// The port sees once what the segment sees at both ends.
	for _, filter := range []string{"icmp", "icmp[icmptype] = icmp-echo", "tcp"} {
		a, b := tcpdumped(t, whole["port tap0 "], filter), tcpdumped(t, whole["vni 100 "], filter)
		if len(b) != 2*len(a) || len(a) < 2 {
			t.Errorf("%s: %d on the port, %d in the segment", filter, len(a), len(b))
		}
	}

	// The tunnel: outer headers, and the filter is for them.
	tunnel, file := begin("vx.pcapng", "tunnel vx -s 80 udp dst port 4789 and src host 10.0.0.1")
	p.ga.Ping("192.168.7.2", 2)
	ends(t, tunnel)
	lines := slices.DeleteFunc(tcpdumped(t, file), func(l string) bool { return !strings.Contains(l, "VXLAN") }) // others are for what is inside
	for _, l := range lines {
		if !strings.Contains(l, "> 10.0.0.2.4789: VXLAN, flags [I] (0x08), vni 100") || !strings.HasPrefix(l, "10.0.0.1.") && !strings.Contains(l, " 10.0.0.1.") {
			t.Errorf("%s", l)
		}
	}
	if len(lines) < 2 {
		t.Errorf("%d packets of the tunnel", len(lines))
	}
}

// A pipe to tcpdump shows packets as they come, and a count ends it.
func TestCapturePipe(t *testing.T) {
	p := newPair(t)
	p.ga.Ping("192.168.7.2", 1)
	ctl := filepath.Join(p.a.bin, "vxsctl") + " -socket " + p.a.socket
	pipe := p.a.Start("sh", "-c", ctl+" capture vni 100 -c 4 icmp | tcpdump -n -l -r -")
	pipe.Want("capturing on vni 100 to standard output")
	stop := p.ga.Pinging("192.168.7.2")
	if err := pipe.Wait(); err != nil {
		t.Errorf("%v", err)
	}
	stop()
	if out := pipe.Output(); strings.Count(out, "ICMP echo") != 4 || !strings.Contains(out, "4 packets captured\n") || !strings.Contains(out, " packets received by filter\n0 packets dropped\n") {
		t.Errorf("%s", out)
	}
	for words, want := range map[string]string{
		"capture port tap9":             `vxsctl: port "tap9": must be one of tap0; a filter that begins with "port" comes after "--"`,
		"capture tunnel tap0":           `vxsctl: tunnel "tap0": must be one of vx`,
		"capture vni 101":               `vxsctl: vni 101: no such segment`,
		"capture vni 100 tcp prot 80":   `vxsctl: filter, column 5: "prot": must be "and" or "or"`,
		"capture tunnel vx ether src 1": `vxsctl: filter, column 11: "1": must be a MAC`,
	} {
		if out, err := p.a.tryCtl(words); err == nil || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %v %s", words, err, out)
		}
	}
}

// Packets without Ethernet have filters for IP, and files that tcpdump reads.
func TestCaptureOfIP(t *testing.T) {
	n := netns.New(t)
	s := newSystem(t, n, "a")
	n.Link(s.Host, "10.0.0.1/24", n.Host("b"), "10.0.0.2/24")
	s.write(`{
  "tunnels": [{"name": "ip", "type": "ipip", "local": "10.0.0.1"}],
  "ports": [{"name": "tun0", "type": "tun"}],
  "segments": [{"vni": 1, "tunnel": "ip", "crossConnect": "10.0.0.2", "members": [{"port": "tun0"}]}],
  "control": {"socket": "SOCKET"}
}`)
	s.run()
	s.IP("addr", "add", "10.1.0.1/16", "dev", "tun0")
	s.IP("link", "set", "tun0", "up")
	for words, want := range map[string]string{
		"port tun0 ether src 02:00:00:00:00:01": `"02:00:00:00:00:01": is for Ethernet, and these packets begin with IP`,
		"vni 1 arp":                             "filter: rejects all packets: they begin with raw IP",
		"tunnel ip vlan":                        "is for Ethernet",
	} {
		if out, err := s.tryCtl("capture " + words); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v %s", words, err, out)
		}
	}
	for place, lines := range map[string][]string{
		"port tun0": {"10.1.0.1 > 10.1.0.2: ICMP echo request"}, "tunnel ip": {"10.0.0.1 > 10.0.0.2", "10.1.0.1 > 10.1.0.2: ICMP echo request"},
		"vni 1": {"10.1.0.1 > 10.1.0.2: ICMP echo request", "10.1.0.1 > 10.1.0.2: ICMP echo request"},
	} {
		file := filepath.Join(filepath.Dir(s.file), "x.pcapng")
		filter := "icmp"
		if place == "tunnel ip" {
			filter = "ip proto 4"
		}
		c := s.watch("capture -w " + file + " " + place + " " + filter)
		c.Want("capturing on " + place)
		s.Try(t.Context(), "ping", "-c", "1", "-W", "1", "10.1.0.2")
		ends(t, c)
		got := strings.Join(tcpdumped(t, file), "\n")
		for _, l := range lines {
			_, rest, ok := strings.Cut(got, l)
			if !ok {
				t.Errorf("%s: %s\nwant %s", place, got, lines)
			}
			got = rest
		}
	}
}

// A slow client loses packets of its own, which are counted, and another's capture beside it has all.
func TestCaptureSlow(t *testing.T) {
	const pings = 3000
	p := newPair(t)
	p.ga.Ping("192.168.7.2", 1)
	slow := exec.CommandContext(t.Context(), filepath.Join(p.a.bin, "vxsctl"), "-socket", p.a.socket, "capture", "vni", "100", "icmp")
	var said check.Log
	slow.Stderr = &said
	out, err := slow.StdoutPipe()
	must(t, err)
	must(t, slow.Start())
	fake.Until(t, "the slow capture", func() bool { return strings.Contains(said.String(), "capturing on vni 100") })
	file := filepath.Join(filepath.Dir(p.a.file), "good.pcapng")
	good := p.a.watch("capture port tap0 -s 96 -w " + file + " icmp") // so that all fit its buffer
	good.Want("capturing on port tap0")

	flooded := make(chan struct{})
	read := make(chan error, 1)
	go func() { // a little at a time, so that the node does not hang up
		b := make([]byte, 16<<10)
		for {
			if _, err := out.Read(b); err != nil {
				read <- err
				return
			}
			select {
			case <-flooded:
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	text, err := p.ga.Try(t.Context(), "ping", "-q", "-f", "-c", strconv.Itoa(pings), "-s", "1400", "192.168.7.2")
	if err != nil || !strings.Contains(text, fmt.Sprintf("%d received", pings)) {
		t.Errorf("%v\n%s", err, text)
	}
	if said := ends(t, good); !strings.Contains(said, fmt.Sprintf("%d packets captured\n%[1]d packets received by filter\n0 packets dropped\n", 2*pings)) {
		t.Errorf("%s", said)
	}
	if n := len(tcpdumped(t, file)); n != 2*pings {
		t.Errorf("tcpdump reads %d packets", n)
	}
	close(flooded)
	must(t, slow.Process.Signal(syscall.SIGINT))
	if err := <-read; err != io.EOF {
		t.Error(err)
	}
	if err := slow.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
	var captured, received, dropped int
	_, counts, _ := strings.Cut(said.String(), "interrupted\n")
	_, err = fmt.Sscanf(counts, "%d packets captured\n%d packets received by filter\n%d packets dropped\n", &captured, &received, &dropped)
	if err != nil || received != 4*pings || dropped == 0 || captured+dropped != received {
		t.Errorf("%v\n%s", err, said.String())
	}
	t.Logf("%s", counts)
}
