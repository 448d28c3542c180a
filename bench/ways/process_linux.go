package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// endWord is the argument that makes the program one end of a round trip.
const endWord = "end-of-round-trip"

// endArgs say what an end is to do.
type endArgs struct {
	Way           int // of waitWays
	Local, Remote string
	For           time.Duration // 0: echo until standard input ends
}

// An endResult is what an end prints.
type endResult struct {
	Trips, Lost    int
	Clock, CPU     time.Duration
	Refused, Error string
}

// inside is the program as an end; false when it is not one.
func inside(args []string) bool {
	if len(args) != 2 || args[0] != endWord {
		return false
	}
	var a endArgs
	var r endResult
	err := json.Unmarshal([]byte(args[1]), &a)
	if err == nil {
		r, err = runEnd(a)
	}
	if no, ok := errors.AsType[refusal](err); ok {
		r.Refused = no.text
	} else if err != nil {
		r.Error = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(r)
	return true
}

func runEnd(a endArgs) (endResult, error) {
	e, err := newEnd(a)
	if err != nil {
		return endResult{}, err
	}
	defer e.Close()
	if a.For > 0 {
		// Who started this may be gone: then nobody wants the result.
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
		return ping(e, a.For)
	}
	var over atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		over.Store(true)
		e.wake()
	}()
	return echo(e, &over)
}

// A process is an end that runs.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	cancel context.CancelFunc
	out    bytes.Buffer
}

// startEnd starts an end in a namespace: a process inherits that, and the CPU, from the
// thread that starts it.
func (l *lab) startEnd(ctx context.Context, ns string, bound bool, cpu int, a endArgs) (*process, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// An end that hangs is killed well after it should have been done.
	ctx, cancel := context.WithTimeout(ctx, a.For+time.Minute+patience)
	p := &process{cmd: exec.CommandContext(ctx, self, endWord, string(text)), cancel: cancel}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		cancel()
		return nil, err
	}
	if bound {
		err = on(ns, cpu, p.cmd.Start)
	} else {
		err = sys.InNamespace(nsPath(ns), p.cmd.Start)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting an end: %w", err)
	}
	return p, nil
}

// finish has an echo end, and returns its result.
func (p *process) finish() (endResult, error) {
	p.stdin.Close()
	return p.result()
}

// result waits for the end of the process.
func (p *process) result() (r endResult, err error) {
	defer p.cancel()
	err = p.cmd.Wait()
	if e := json.Unmarshal(p.out.Bytes(), &r); err != nil || e != nil {
		return r, fmt.Errorf("an end: %w: %s", errors.Join(err, e), p.out.String())
	}
	switch {
	case r.Refused != "":
		return r, refusal{r.Refused}
	case r.Error != "":
		return r, errors.New(r.Error)
	}
	return r, nil
}
