package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

const hangupFile = "VXS_HANGUP_FILE"

// SIGHUP while the program reads its file is a reload, not the end, after which systemd would not start it again.
func TestEarlyHangup(t *testing.T) {
	if file := os.Getenv(hangupFile); file != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, []string{"-config", file}, os.Stdout, os.Stderr))
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	w, err := os.OpenFile(fifo, os.O_RDWR, 0) // there is a writer, who says nothing yet
	must(t, err)
	c := exec.Command(os.Args[0], "-test.run=^TestEarlyHangup$")
	c.Env = append(os.Environ(), hangupFile+"="+fifo, "TMPDIR="+t.TempDir())
	var out check.Log
	c.Stdout, c.Stderr = &out, &out
	must(t, c.Start())
	defer func() {
		c.Process.Kill()
		c.Wait()
	}()
	fake.Until(t, "the file is read", func() bool {
		fds, _ := filepath.Glob("/proc/" + strconv.Itoa(c.Process.Pid) + "/fd/*")
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && to == fifo {
				return true
			}
		}
		return false
	})
	must(t, c.Process.Signal(syscall.SIGHUP))
	time.Sleep(50 * time.Millisecond)
	_, err = w.WriteString("{}")
	must(t, err)
	must(t, w.Close())
	fake.Until(t, "ready, and the file is read again", func() bool {
		return strings.Contains(out.String(), "ready ") && strings.Contains(out.String(), "empty file")
	})
	must(t, c.Process.Signal(syscall.SIGTERM))
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
