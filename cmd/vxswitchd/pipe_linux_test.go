package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe nobody writes to does not hold up the node, nor one whose writer says nothing; from
// another one the configuration is read.
func TestPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	begun := time.Now()
	if _, err := load(fifo); err == nil || time.Since(begun) > time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	must(t, err)
	defer w.Close()
	if _, err := readFile(fifo, maxFile, time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a writer who says nothing: %v", err)
	}
	go func() {
		w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err == nil {
			w.WriteString(`{"maxMACs": 7}`)
			w.Close()
		}
	}()
	time.AfterFunc(100*time.Millisecond, func() { w.Close() })
	if cfg, err := load(fifo); err != nil || cfg.MaxMACs != 7 {
		t.Errorf("%v %+v", err, cfg)
	}
}
