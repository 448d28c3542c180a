package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What is interrupted before the node has answered is no success, but for what is watched until then. What fails at the end of
// that is none, either.
func TestInterrupted(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for words, want := range map[string]string{
		"reload": "interrupted", "fdb": "interrupted", "port add tap0": "interrupted", "config del ports tap0": "interrupted",
		"colour": "must be one of", "monitor": "", "trace": "", "top": "", "capture": "",
	} {
		code, _, errs := f.do(ctx, strings.Fields(words)...)
		if (code == 0) != (want == "") || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %q, want %q", words, code, errs, want)
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	var said bytes.Buffer
	whenSaid := writerFunc(func(b []byte) (int, error) {
		cancel()
		return said.Write(b)
	})
	if code := run(ctx, []string{"-socket", f.socket, "capture", "-w", "/dev/full"}, nil, io.Discard, whenSaid); code != 1 || !strings.Contains(said.String(), "no space left") {
		t.Errorf("%d %q", code, said.String())
	}
}

// A first interruption ends a program that waits for a node that says nothing, or for its input.
func TestInterruptedWhileWaiting(t *testing.T) {
	dir := check.Must(os.MkdirTemp("", "vxsctl"))(t)
	defer os.RemoveAll(dir)
	silent := check.Must(net.Listen("unix", filepath.Join(dir, "s")))(t)
	defer silent.Close()
	in, write, err := os.Pipe()
	check.OK(t, err)
	defer in.Close()
	for _, x := range []struct {
		words string
		want  int
	}{{"monitor", 0}, {"reload", 1}, {"capture", 0}, {"config apply -", 1}} {
		words, want := x.words, x.want
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, append([]string{"-socket", filepath.Join(dir, "s")}, strings.Fields(words)...), in, io.Discard, io.Discard)
		}()
		time.Sleep(50 * time.Millisecond)
		cancel()
		select {
		case code := <-ended:
			if code != want {
				t.Errorf("%s: %d, want %d", words, code, want)
			}
		case <-time.After(2 * time.Second):
			t.Errorf("%s waits still", words)
			silent.Close()
			write.Close()
			<-ended
		}
	}
	write.Close()
}
