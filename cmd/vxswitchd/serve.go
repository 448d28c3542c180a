package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"

	"github.com/vxswitch/vxswitch/node"
)

// owner is the owner of rows made over the socket.
const owner = "vxsctl"

// A daemon is a node with a file and a socket.
type daemon struct {
	file string
	n    *node.Node
	api  *server
	out  io.Writer

	mu     sync.Mutex // one reload at a time
	socket *socket    // nil: none
	closed bool
}

// signals are what the program is asked for while it runs.
type signals struct{ reload, stats chan os.Signal }

func newSignals() *signals {
	s := &signals{make(chan os.Signal, 1), make(chan os.Signal, 1)}
	notify(s.reload, s.stats)
	return s
}

func (s *signals) stop() {
	signal.Stop(s.reload)
	signal.Stop(s.stats)
}

// serve runs a node until ctx is done.
func serve(ctx context.Context, file string, cfg *node.Config, metrics string, asked *signals, stdout, stderr io.Writer) error {
	out, errs := &lines{w: stdout}, &lines{w: stderr}
	n, err := node.New(&node.Options{
		Owners: []string{owner}, Offload: carry,
		Log: slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	d := &daemon{file: file, n: n, out: out}
	d.api = newServer(n, d.reload, d.apply)
	var running sync.WaitGroup
	running.Go(func() { n.Run(context.Background()) }) // Close ends it
	defer running.Wait()
	defer n.Close()
	defer d.close()

	if err := d.apply(restoreOwned(cfg, errs)); err != nil {
		return err
	}
	if err := d.api.alone(d.forget); err != nil {
		complain(errs, err)
	}
	cfg = n.Config()
	m, err := monitored(metrics, n)
	if err != nil {
		return err
	}
	defer m.close()
	d.mu.Lock()
	socket := cmp.Or(d.socket.at(), "none") // a PUT may move it
	d.mu.Unlock()
	fmt.Fprintf(out, "ready segments=%d ports=%d tunnels=%d socket=%s%s\n",
		len(cfg.Segments), len(cfg.Ports), len(cfg.Tunnels), socket, m.at())
	for {
		select {
		case <-asked.reload:
			if err := d.hangup(); err != nil {
				complain(errs, err)
			}
		case <-asked.stats:
			fmt.Fprintln(out, statsLine(n))
		case <-ctx.Done():
			return nil
		}
	}
}

// forget deletes the ports of other programs that have no device any more.
func (d *daemon) forget() error {
	if cfg := withoutGone(d.n); cfg != nil {
		return d.apply(cfg)
	}
	return nil
}

// reload reads the file again. An error changes nothing.
func (d *daemon) reload() error {
	cfg, err := load(d.file)
	if err != nil {
		return err
	}
	if cfg, err = adopt(cfg, owned(d.n.Config())); err != nil {
		return located(d.file, err)
	}
	if err := d.apply(cfg); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "reloaded")
	return nil
}

// hangup reloads after SIGHUP, as a change among those of the socket.
func (d *daemon) hangup() error { return d.api.alone(d.reload) }

// apply applies cfg to the node and the socket, or to neither.
func (d *daemon) apply(cfg *node.Config) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("the node is stopping: %w", net.ErrClosed)
	}
	old, next := d.socket, d.socket
	moved := cfg.Control.Socket != old.at() || !old.there()
	if moved {
		var err error
		if next, err = openSocket(cfg.Control); err != nil {
			return err
		}
	}
	was := d.n.Config()
	err := saveOwned(cfg)
	if err == nil {
		err = d.n.Apply(cfg)
	}
	if err != nil {
		if moved {
			next.close()
		}
		saveOwned(was)
		return advise(located(d.file, err))
	}
	if path := ownedFile(was.Control.Socket); path != "" && path != ownedFile(cfg.Control.Socket) {
		os.Remove(path)
	}
	if !moved {
		return old.chmod(modeOf(cfg.Control))
	}
	d.socket = next
	if next != nil {
		d.api.listen(next)
	}
	old.close()
	return nil
}

func (d *daemon) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.socket.close()
	d.api.close()
}

// lines is a Writer for several goroutines that keeps lines together.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
