package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// patience bounds every command beyond the time it is asked to measure.
const patience = 20 * time.Second

// command prepares a program inside a namespace, or outside if ns is "".
func command(ctx context.Context, ns string, args ...string) *exec.Cmd {
	if ns != "" {
		args = append([]string{"ip", "netns", "exec", ns}, args...)
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.WaitDelay = time.Second // children that hold its output open
	group(c)
	return c
}

// output runs a program to its end and returns its standard output.
func output(ctx context.Context, limit time.Duration, ns string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := command(ctx, ns, args...).Output()
	if err != nil {
		said := out
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
			said = exit.Stderr
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, tail(said))
	}
	return out, nil
}

// ip has iproute2 execute lines of commands in a namespace, or outside if ns is "".
func ip(ctx context.Context, ns string, lines ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := []string{"ip", "-batch", "-"}
	if ns != "" {
		args = []string{"ip", "-n", ns, "-batch", "-"}
	}
	c := command(ctx, "", args...)
	c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s: %s", err, strings.Join(lines, "; "), tail(out))
	}
	return nil
}

// A process runs in the background.
type process struct {
	cmd  *exec.Cmd
	line string
	ns   string // its namespace
	said awaited
	done chan struct{} // closed when it has ended
}

// start runs a program in the background inside a namespace, and returns when it has
// printed text.
func start(ctx context.Context, text, ns string, args ...string) (*process, error) {
	p := &process{line: strings.Join(args, " "), ns: ns, done: make(chan struct{})}
	p.said = awaited{text: []byte(text), seen: make(chan struct{})}
	p.cmd = command(ctx, ns, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	why := "not ready in time"
	select {
	case <-p.said.seen:
		return p, nil
	case <-p.done:
		why = "ended: " + p.cmd.ProcessState.String()
	case <-time.After(patience):
	}
	p.kill()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%s: %s: %s", p.line, why, tail(p.said.buf))
}

// pid is that of the program: "ip netns exec" becomes it.
func (p *process) pid() int { return p.cmd.Process.Pid }

// wait returns what the process printed, when it has ended by itself.
func (p *process) wait(ctx context.Context) ([]byte, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: does not end", p.line)
	}
	if !p.cmd.ProcessState.Success() {
		return nil, fmt.Errorf("%s: %s: %s", p.line, p.cmd.ProcessState, tail(p.said.buf))
	}
	return p.said.buf, nil
}

// kill ends the process with its children, and returns when it has.
func (p *process) kill() {
	select {
	case <-p.done: // the number may belong to somebody else by now
	default:
		p.cmd.Cancel()
		<-p.done
	}
}

// most is how much of what a program prints in the background is kept, in bytes.
const most = 1 << 16

// awaited collects what a program prints, and tells when a text is in it.
type awaited struct {
	text  []byte
	buf   []byte
	seen  chan struct{} // closed when it is there
	found bool
}

func (a *awaited) Write(p []byte) (int, error) {
	a.buf = append(a.buf, p[:min(len(p), most-len(a.buf))]...)
	if !a.found {
		if a.found = bytes.Contains(a.buf, a.text); a.found {
			close(a.seen)
		}
	}
	return len(p), nil
}

// tail is the end of what a program printed, on one line.
func tail(b []byte) string {
	s := strings.Join(strings.Fields(string(b)), " ")
	if len(s) > 400 {
		s = "..." + s[len(s)-400:]
	}
	return s
}
