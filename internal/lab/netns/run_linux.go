package netns

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// packages says what to install for a tool.
var packages = map[string]string{
	"arping": "iputils-arping", "bird": "bird2", "birdc": "bird2", "bridge": "iproute2", "curl": "curl", "ethtool": "ethtool", "gobgpd": "gobgpd", "ip": "iproute2", "iperf3": "iperf3",
	"ndisc6": "ndisc6", "nft": "nftables", "ovs-vsctl": "openvswitch-switch", "ping": "iputils-ping", "setpriv": "util-linux", "unshare": "util-linux", "smcrouted": "smcroute",
	"ss": "iproute2", "systemd-analyze": "systemd",
	"tcpdump": "tcpdump", "wg": "wireguard-tools", "wireguard-go": "wireguard-go", "traceroute": "traceroute", "tshark": "tshark",
}

// Tool ends the test when a program is missing, with what to install.
func Tool(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		pkg := packages[name]
		if pkg == "" {
			t.Fatalf("lab: %v", err)
		}
		t.Fatalf("lab: %v: install the package %s (apt-get install %[2]s)", err, pkg)
	}
}

// Try runs a program inside the host until it ends, at most [Timeout] long and not
// beyond ctx. It returns what the program printed on both outputs; an error says
// it too.
func (h *Host) Try(ctx context.Context, name string, args ...string) (string, error) {
	h.t.Helper()
	Tool(h.t, name)
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	out, err := Command(ctx, h.NS, append([]string{name}, args...)...).CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		err = fmt.Errorf("host %s: %s %s: %w\n%s", h.Name, name, strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// Run is Try that ends the test when the program fails.
func (h *Host) Run(name string, args ...string) string {
	h.t.Helper()
	out, err := h.Try(h.t.Context(), name, args...)
	if err != nil {
		h.t.Fatalf("lab: %v", err)
	}
	return out
}

// A Proc is a [Process] inside a host. It ends with the test.
type Proc struct {
	*Process
	h *Host
}

// Start runs a program in the background inside the host. It is killed, with its
// children, when the test ends; if the test failed its output is logged.
func (h *Host) Start(name string, args ...string) *Proc {
	h.t.Helper()
	Tool(h.t, name)
	p, err := Start(context.Background(), h.NS, append([]string{name}, args...)...)
	if err != nil {
		h.t.Fatalf("lab: host %s: %v", h.Name, err)
	}
	h.t.Cleanup(func() {
		p.Kill()
		if h.t.Failed() {
			h.t.Logf("lab: host %s: output of %s:\n%s", h.Name, p.Line, p.Output())
		}
	})
	return &Proc{p, h}
}

// Signal sends the program a signal. It is no error if it has ended.
func (p *Proc) Signal(s syscall.Signal) {
	p.h.t.Helper()
	if p.ended() {
		return
	}
	if err := syscall.Kill(p.PID(), s); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.h.t.Fatalf("lab: host %s: signal to %s: %v", p.h.Name, p.Line, err)
	}
}

// Wait waits until the program ends, at most [Timeout], and returns its error, an
// *exec.ExitError when its status is not 0.
func (p *Proc) Wait() error {
	p.h.t.Helper()
	if err := p.Ended(context.Background()); !p.ended() {
		p.h.t.Fatalf("lab: host %s: %v", p.h.Name, err)
	}
	return p.err
}

// Stop sends SIGTERM, waits until the program ends, and returns its error. One that
// is still there after 5 s is killed.
func (p *Proc) Stop() error {
	p.h.t.Helper()
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
	return p.err
}

// Want waits until the program has printed text, and ends the test when it does not
// within [Timeout] or ends first.
func (p *Proc) Want(text string) {
	p.h.t.Helper()
	p.WantWithin(text, Timeout)
}

// WantWithin is Want with another time.
func (p *Proc) WantWithin(text string, d time.Duration) {
	p.h.t.Helper()
	if err := p.printed(context.Background(), text, d); err != nil {
		p.h.t.Fatalf("lab: host %s: %v", p.h.Name, err)
	}
}
