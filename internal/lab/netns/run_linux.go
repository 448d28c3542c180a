package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// packages says what to install for a tool.
var packages = map[string]string{
	"arping": "iputils-arping", "bridge": "iproute2", "ethtool": "ethtool", "ip": "iproute2", "iperf3": "iperf3",
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

// command prepares a program inside the host. It leads a process group of its own.
func (h *Host) command(ctx context.Context, name string, args []string) *exec.Cmd {
	h.t.Helper()
	Tool(h.t, name)
	c := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", h.NS, name}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	return c
}

// Try runs a program inside the host until it ends, at most [Timeout] long and not
// beyond ctx. It returns what the program printed on both outputs; an error says
// it too.
func (h *Host) Try(ctx context.Context, name string, args ...string) (string, error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	out, err := h.command(ctx, name, args).CombinedOutput()
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

// A Proc is a program that runs in the background inside a host.
type Proc struct {
	h    *Host
	cmd  *exec.Cmd
	line string // for messages
	out  output
	done chan struct{} // closed when it has ended
	err  error         // of Wait, once done
}

// Start runs a program in the background inside the host. It is killed, with its
// children, when the test ends; if the test failed its output is logged.
func (h *Host) Start(name string, args ...string) *Proc {
	h.t.Helper()
	p := &Proc{h: h, line: strings.Join(append([]string{name}, args...), " "), done: make(chan struct{})}
	p.cmd = h.command(context.Background(), name, args)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		h.t.Fatalf("lab: host %s: %s: %v", h.Name, p.line, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	h.t.Cleanup(func() {
		p.kill()
		if h.t.Failed() {
			h.t.Logf("lab: host %s: output of %s:\n%s", h.Name, p.line, p.Output())
		}
	})
	return p
}

// PID returns the program's process id.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Output returns what the program has printed so far on both outputs.
func (p *Proc) Output() string { return p.out.String() }

// Signal sends the program a signal. It is no error if it has ended.
func (p *Proc) Signal(s syscall.Signal) {
	p.h.t.Helper()
	select {
	case <-p.done:
		return
	default:
	}
	if err := syscall.Kill(p.PID(), s); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.h.t.Fatalf("lab: host %s: signal to %s: %v", p.h.Name, p.line, err)
	}
}

// Wait waits until the program ends, at most [Timeout], and returns its error, an
// *exec.ExitError when its status is not 0.
func (p *Proc) Wait() error {
	p.h.t.Helper()
	select {
	case <-p.done:
	case <-time.After(Timeout):
		p.h.t.Fatalf("lab: host %s: %s still runs after %v\n%s", p.h.Name, p.line, Timeout, p.Output())
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
		p.kill()
	}
	return p.err
}

// Want waits until the program has printed text, and ends the test when it does not
// within [Timeout] or ends first.
func (p *Proc) Want(text string) {
	p.h.t.Helper()
	over := time.After(Timeout)
	for {
		ended := false
		select {
		case <-p.done:
			ended = true
		default:
		}
		if strings.Contains(p.Output(), text) {
			return
		}
		if ended {
			p.h.t.Fatalf("lab: host %s: %s ended (%v) without %q\n%s", p.h.Name, p.line, p.err, text, p.Output())
		}
		select {
		case <-over:
			p.h.t.Fatalf("lab: host %s: %s did not print %q within %v\n%s", p.h.Name, p.line, text, Timeout, p.Output())
		case <-p.done:
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *Proc) kill() {
	select {
	case <-p.done: // the number may belong to somebody else by now
	default:
		syscall.Kill(-p.PID(), syscall.SIGKILL)
		<-p.done
	}
}

// output collects what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
