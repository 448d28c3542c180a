package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// frameText is an Ethernet frame.
const frameText = "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x09\x08\x00" + "nothing the kernel would answer"

// send sends one datagram.
func send(t *testing.T, to, payload string) {
	t.Helper()
	c, err := net.Dial("udp", to)
	must(t, err)
	defer c.Close()
	if _, err := c.Write([]byte(payload)); err != nil {
		t.Fatal(err)
	}
}

// freePort returns a UDP port of 127.0.0.1 that nobody uses, and one that is taken.
func freePort(t *testing.T) (free, taken int) {
	t.Helper()
	var ports [2]int
	for i := range ports {
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		must(t, err)
		ports[i] = c.LocalAddr().(*net.UDPAddr).Port
		if i == 0 {
			defer c.Close()
		} else {
			t.Cleanup(func() { c.Close() })
		}
	}
	return ports[0], ports[1]
}

// A failure of the system is one line with the cause and what to do, and status 1.
func TestSystemErrors(t *testing.T) {
	_, taken := freePort(t)
	for _, c := range []struct{ name, args, want string }{
		{"port taken", fmt.Sprintf("-local 127.0.0.1 -dstport %d", taken),
			fmt.Sprintf("underlay: listen udp4 127.0.0.1:%d: bind: address already in use: stop the program or vxlan device that uses the port, or choose another -dstport", taken)},
		{"address not local", "-local 192.0.2.77",
			"underlay: listen udp4 192.0.2.77:4789: bind: cannot assign requested address: -local must be an address of this host"},
		{"zone unknown", "-local fe80::1%nowhere",
			"underlay: local address: frame: zone of fe80::1%nowhere: route ip+net: no such network interface"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
			if code != 1 || stderr.String() != "p2p: "+c.want+"\n" || stdout.Len() != 0 {
				t.Errorf("status %d\n got %q\nwant %q\nstdout %q", code, stderr.String(), "p2p: "+c.want+"\n", &stdout)
			}
		})
	}
}

// Without privileges: in a process of its own, which gives them up if the test has
// them.
func TestNoPermission(t *testing.T) {
	path, err := program()
	must(t, err)
	free, _ := freePort(t)
	for _, c := range []struct{ args, want string }{
		{fmt.Sprintf("-dstport %d -dev vxs77", free),
			`port: TAP "vxs77": needs CAP_NET_ADMIN, .*: run as root, or first, as root: ip tuntap add vxs77 mode tap user NAME; ip link set vxs77 mtu \d+ up`},
		{"-dstport 1", `underlay: listen udp4 127.0.0.1:1: bind: permission denied: run as root, or choose a -dstport above 1023`},
	} {
		if low, _ := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); c.args == "-dstport 1" && strings.TrimSpace(string(low)) == "0" {
			continue // this system lets everybody bind low ports
		}
		cmd := exec.CommandContext(t.Context(), path, append([]string{"-local", "127.0.0.1"}, strings.Fields(c.args)...)...)
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		wantFailure(t, cmd, c.want)
	}
}

// wantFailure runs a command to its end: one line on standard error, status 1.
func wantFailure(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	timer := time.AfterFunc(netns.Timeout, func() { cmd.Process.Kill() })
	defer timer.Stop()
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v, want status 1", err)
	}
	if !regexp.MustCompile(`^p2p: `+want+`\n$`).Match(stderr.Bytes()) || stdout.Len() > 0 {
		t.Errorf("\n got %q\nwant %q\nstdout %q", &stderr, want, &stdout)
	}
}

// What can be wrong with the device, before and after the start.
func TestDeviceErrors(t *testing.T) {
	n := netns.New(t)
	path, err := program()
	must(t, err)
	a := n.Host("a")
	a.Addr("lo", "10.0.0.1/32")
	a.IP("tuntap", "add", "tun9", "mode", "tun")
	p := a.Start(path, "-local", "127.0.0.1")
	p.Want("ready dev=vxs0 ")
	fail := func(dev, want string) {
		t.Helper()
		wantFailure(t, inside(a, path, "-local 10.0.0.1 -dev "+dev), want)
	}
	fail("vxs0", `port: TAP "vxs0": another program is attached to it: device or resource busy: stop that program, or choose another -dev`)
	fail("tun9", `port: TAP "tun9": the device is a TUN, not a TAP: invalid argument: choose another -dev`)

	fail("tun9 -queues 2", `port: TAP "tun9": the device is a TUN, not a TAP: invalid argument: choose another -dev, or leave -queues out`)

	a.IP("link", "del", "vxs0")
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("device deleted: %v, want status 1", err)
	}
	lines := strings.Split(p.Output(), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "stats {") ||
		lines[2] != `p2p: the tunnel is down: port: TAP "vxs0": it was deleted: file descriptor in bad state: start p2p again` {
		t.Errorf("%q", lines)
	}
}
