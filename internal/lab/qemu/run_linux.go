package qemu

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Try gives lines to the guest's shell and waits until they end, at most
// [netns.Timeout]. It returns what they printed on both outputs, and their status: not 0
// is a failure. What they leave in the background goes on; its output is lost.
func (g *Guest) Try(lines string) (out string, status int) {
	g.t.Helper()
	g.last++
	g.deadline(netns.Timeout)
	if _, err := fmt.Fprintf(g.conn, "%d %s\n", g.last, base64.StdEncoding.EncodeToString([]byte(lines))); err != nil {
		g.fail(lines, err)
	}
	var number, size int
	head, err := g.in.ReadString('\n')
	if err != nil {
		g.fail(lines, err)
	}
	if _, err := fmt.Sscan(head, &number, &status, &size); err != nil || number != g.last {
		g.fail(lines, fmt.Errorf("the answer is %q", head))
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(g.in, text); err != nil {
		g.fail(lines, err)
	}
	return string(text), status
}

// Run is Try that ends the test when the status is not 0.
func (g *Guest) Run(lines string) string {
	g.t.Helper()
	out, status := g.Try(lines)
	if status != 0 {
		g.t.Fatalf("lab: guest: %s: status %d\n%s", lines, status, out)
	}
	return out
}

// ready waits until the guest listens to commands.
func (g *Guest) ready() {
	g.t.Helper()
	g.deadline(BootTimeout)
	for {
		line, err := g.in.ReadString('\n')
		if err != nil {
			g.fail("boot", err)
		}
		if strings.TrimSpace(line) == "ready" {
			break
		}
	}
	// A line that was just opened may lose the first of what comes in.
	for end := time.Now().Add(BootTimeout); ; {
		g.last++
		g.deadline(time.Second)
		_, err := fmt.Fprintf(g.conn, "%d \n", g.last)
		for line := ""; err == nil; {
			if line, err = g.in.ReadString('\n'); strings.TrimSpace(line) == fmt.Sprintf("%d 0 0", g.last) {
				return
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
			g.fail("the first command", err)
		}
	}
}

func (g *Guest) deadline(d time.Duration) {
	g.t.Helper()
	if err := g.conn.SetDeadline(time.Now().Add(d)); err != nil {
		g.fail("deadline", err)
	}
}

// fail ends the test, with what the guest's kernel printed.
func (g *Guest) fail(what string, err error) {
	g.t.Helper()
	g.t.Fatalf("lab: guest: %s: %v\n%s", what, err, g.proc.Output())
}
