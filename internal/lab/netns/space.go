package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Timeout bounds every command a lab waits for. Some compile, on machines that do other things.
const Timeout = time.Minute

// Folder is where iproute2 keeps the names of namespaces.
const Folder = "/run/netns"

// Command prepares a program inside a namespace, or outside if ns is "". It leads a process
// group of its own, so that an interrupt from the terminal does not reach it, and all of the
// group is killed when ctx ends.
func Command(ctx context.Context, ns string, args ...string) *exec.Cmd {
	if ns != "" {
		args = append([]string{"ip", "netns", "exec", ns}, args...)
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.WaitDelay = 10 * time.Second // children that hold its output open, also those that others have just started, until they are their program
	group(c)
	return c
}

// Output runs a program to its end, at most limit long, and returns its standard output. The
// error has the last of what it printed.
func Output(ctx context.Context, limit time.Duration, ns string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := Command(ctx, ns, args...).Output()
	if err != nil {
		said := out
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
			said = exit.Stderr
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, Tail(said))
	}
	return out, nil
}

// IP has iproute2 execute lines of commands in a namespace, or outside if ns is "".
func IP(ctx context.Context, ns string, lines ...string) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	args := []string{"ip", "-batch", "-"}
	if ns != "" {
		args = []string{"ip", "-n", ns, "-batch", "-"}
	}
	c := Command(ctx, "", args...)
	c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s: %s", err, strings.Join(lines, "; "), Tail(out))
	}
	return nil
}

// Tail is the end of what a program printed, on one line.
func Tail(b []byte) string {
	s := strings.Join(strings.Fields(string(b)), " ")
	if len(s) > 400 {
		s = "..." + s[len(s)-400:]
	}
	return s
}

// A Process is a program that runs in the background.
type Process struct {
	NS   string // its namespace
	Line string // the command
	cmd  *exec.Cmd
	said check.Log
	done chan struct{} // closed when it has ended
	err  error         // of Wait, once done
}

// Start runs a program in the background, until it ends, it is killed or ctx ends.
func Start(ctx context.Context, ns string, args ...string) (*Process, error) {
	p := &Process{NS: ns, Line: strings.Join(args, " "), cmd: Command(ctx, ns, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Line, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID returns the program's process id: "ip netns exec" becomes the program.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns what the program has printed so far on both outputs.
func (p *Process) Output() string { return p.said.String() }

// Printed waits until the program has printed text, at most [Timeout].
func (p *Process) Printed(ctx context.Context, text string) error {
	return p.printed(ctx, text, Timeout)
}

func (p *Process) printed(ctx context.Context, text string, within time.Duration) error {
	over := time.After(within)
	for {
		ended := p.ended()
		switch {
		case strings.Contains(p.Output(), text):
			return nil
		case ended:
			return fmt.Errorf("%s ended (%v) without %q\n%s", p.Line, p.err, text, p.Output())
		}
		select {
		case <-over:
			return fmt.Errorf("%s did not print %q within %v\n%s", p.Line, text, within, p.Output())
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Ended waits until the program has ended by itself, at most [Timeout]. The error is its own,
// an *exec.ExitError where its status is not 0.
func (p *Process) Ended(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(Timeout):
		return fmt.Errorf("%s still runs after %v\n%s", p.Line, Timeout, p.Output())
	}
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Kill ends the program with its children, and returns when it has.
func (p *Process) Kill() {
	if !p.ended() { // else the number may belong to somebody else by now
		p.cmd.Cancel()
		<-p.done
	}
}

// Remove ends the processes of a namespace and deletes it. One that does not exist is no
// error.
func Remove(ns string) error {
	if _, err := os.Stat(Folder + "/" + ns); ns == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	pids, _ := Output(context.Background(), Timeout, "", "ip", "netns", "pids", ns)
	for f := range strings.FieldsSeq(string(pids)) {
		// Not this process: a thread of it may be inside, see Do.
		if pid, err := strconv.Atoi(f); err == nil && pid != os.Getpid() {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
	}
	return IP(context.Background(), "", "netns del "+ns)
}

// Sweep calls remove with the names in a folder that begin with a prefix and the id of a
// process that is no more.
func Sweep(folder, prefix string, remove func(name string) error) (err error) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if pid, ok := owner(e.Name(), prefix); ok && gone(pid) {
			err = errors.Join(err, remove(e.Name()))
		}
	}
	return err
}

// owner returns the process whose id follows the prefix of a name.
func owner(name, prefix string) (pid int, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	first, _, more := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(first)
	return pid, ok && more && err == nil && pid > 0
}
