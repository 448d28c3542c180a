package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"reflect"
	"sync"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/discovery"
	"github.com/vxswitch/vxswitch/evpn"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb"
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
func serve(ctx context.Context, name string, cfg *file.Config, metrics string, asked *signals, stdout, stderr io.Writer) error {
	out, errs := &lines{w: stdout}, &lines{w: stderr}
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := node.New(&node.Options{Owners: []string{owner, flannel.DefaultOwner, evpn.DefaultOwner, bgp.DefaultOwner, calico.DefaultOwner, ovsdb.DefaultOwner, discovery.DefaultOwner}, Offload: carry, Log: log})
	if err != nil {
		return err
	}
	d := &daemon{file: name, n: n, out: out}
	d.api = newServer(n, log, d.reload, d.apply)
	var running sync.WaitGroup
	running.Go(func() { n.Run(context.Background()) }) // Close ends it
	defer running.Wait()
	defer n.Close()
	defer d.close()

	cfg.Config = *restoreOwned(&cfg.Config, errs)
	if err := d.change(cfg, false); err != nil {
		return located(name, err)
	}
	if err := d.api.alone(d.forget); err != nil {
		complain(errs, err)
	}
	cfg = d.api.config()
	m, err := monitored(metrics, n, d.api)
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
		all := d.api.config()
		all.Config = *cfg
		return d.apply(all)
	}
	return nil
}

// reload reads the file again. An error changes nothing.
func (d *daemon) reload() error {
	cfg, err := load(d.file)
	if err != nil {
		return err
	}
	adopted, err := adopt(&cfg.Config, owned(d.n.Config()))
	if err != nil {
		return located(d.file, err)
	}
	cfg.Config = *adopted
	if err := d.replace(cfg, true); err != nil {
		return located(d.file, err)
	}
	fmt.Fprintln(d.out, "reloaded")
	return nil
}

// hangup reloads after SIGHUP, as a change among those of the socket.
func (d *daemon) hangup() error { return d.api.alone(d.reload) }

// apply carries out a change over the socket.
func (d *daemon) apply(cfg *file.Config) error { return d.replace(cfg, false) }

// replace is change for a node that runs: a section that would end, because its files cannot be read, is an error.
func (d *daemon) replace(cfg *file.Config, reread bool) error {
	for _, err := range []error{d.api.flannel.unreadable(cfg.Flannel, reread), d.api.evpn.unreadable(cfg.EVPN, reread), d.api.bgp.unreadable(cfg.BGP, reread), d.api.calico.unreadable(cfg.Calico, reread), d.api.discovery.unreadable(cfg.Discovery, reread)} {
		if err != nil {
			return err
		}
	}
	return d.change(cfg, reread)
}

// change applies cfg to the node, the sections and the socket, or to none of them. With reread, sections that stay as they are read the
// files that they name again, such as those of passwords.
func (d *daemon) change(cfg *file.Config, reread bool) error {
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
	was, workloads, others := d.n.Config(), workloadsOf(d.api.calico.config()), workloadsOf(cfg.Calico)
	changed := []func(ok bool){d.api.flannel.change(cfg.Flannel, reread), d.api.evpn.change(cfg.EVPN, reread), d.api.bgp.change(cfg.BGP, reread), d.api.calico.change(cfg.Calico, reread), d.api.ovsdb.change(cfg.OVSDB, reread), d.api.discovery.change(cfg.Discovery, reread)}
	var err error
	ends := reflect.DeepEqual(others, calico.Workloads{}) // and ports that were workloads open once the node has changed
	if !ends {
		err = d.api.calico.guard(workloads, others)
	}
	if err == nil {
		err = saveOwned(&cfg.Config)
	}
	if err == nil {
		err = d.n.Apply(&cfg.Config)
	}
	if err == nil && ends {
		err = d.api.calico.guard(workloads, others)
	}
	if err != nil {
		err = errors.Join(err, d.api.calico.guard(others, workloads))
	}
	for _, done := range changed {
		done(err == nil)
	}
	if err != nil {
		if moved {
			next.close()
		}
		if path, kept := ownedFile(cfg.Control.Socket), ownedFile(was.Control.Socket); kept != "" && path != kept {
			os.Remove(path)
		}
		saveOwned(was)
		return advise(err)
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
	d.api.ovsdb.end(false)
	d.api.discovery.end(false)
	d.api.evpn.end(false)
	d.api.bgp.end(false)
	d.api.calico.end(false)
	d.api.flannel.end(false)
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
