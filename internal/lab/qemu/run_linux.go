package qemu

import (
	"encoding/base64"
	"fmt"
	"io"
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
	command := base64.StdEncoding.EncodeToString([]byte(lines))
	var number, size int
	for tries := 0; ; tries++ {
		if _, err := fmt.Fprintf(g.conn, "%d %d %s\n", g.last, len(command), command); err != nil {
			g.fail(lines, err)
		}
		head, err := g.in.ReadString('\n')
		if err != nil {
			g.fail(lines, err)
		}
		if head == "again\n" && tries < 10 {
			continue // a part of the line was lost, as happens on a serial line while a guest comes up
		}
		if _, err := fmt.Sscan(head, &number, &status, &size); err != nil || number != g.last {
			g.fail(lines, fmt.Errorf("the answer is %q", head))
		}
		break
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
			return
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
