package daemon

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/node"
)

// Main is the program vxflanneld. It runs until ctx ends, and returns the exit status: 0, 1 after a failure, 2 for a wrong flag.
func Main(ctx context.Context, args, env []string, p *Program) int {
	o, err := parse(args, env)
	switch {
	case err == nil && o.kubernetes && p.Cluster == nil:
		err = errors.New("-kube-subnet-mgr: this program is built without Kubernetes")
	case err == nil && o.datapath == node.DatapathKernel && p.Offload == nil:
		err = errors.New("-datapath kernel: this program is built without eBPF")
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.Stdout, usage)
		return 0
	case err == nil && o.version:
		fmt.Fprintln(p.Stdout, p.Version)
		return 0
	case err != nil:
		fmt.Fprintln(p.Stderr, "vxflanneld:", oneLine(err))
		return 2
	}
	level := slog.LevelWarn
	if o.verbose > 0 {
		level = slog.LevelInfo
	}
	c := &command{flags: o, Program: p, log: slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: level})), env: env}
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(p.Stderr, "vxflanneld:", oneLine(flagged(err)))
		return 1
	}
	return 0
}

// A command is a running vxflanneld: a Daemon on a node of its own.
type command struct {
	*flags
	*Program
	log    *slog.Logger
	env    []string
	daemon atomic.Pointer[Daemon]
}

func (c *command) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	if c.healthzPort != 0 {
		l, err := net.Listen("tcp", net.JoinHostPort(c.healthzIP, strconv.Itoa(c.healthzPort)))
		if err != nil {
			return fmt.Errorf("-healthz-ip, -healthz-port: %w", err)
		}
		tasks.Go(func() { serve(ctx, l, c.canMakePods) })
	}
	o := &Options{Log: c.log, Ready: c.ready}
	if c.kubernetes {
		k, err := c.Cluster(&c.kube)
		if err != nil {
			return err
		}
		defer k.Close()
		o.Store = k
		c.given(ctx, k)
		if c.unavailable {
			ready := make(chan struct{})
			o.Ready = func(s flannel.Status, mtu int) { close(ready); c.ready(s, mtu) }
			tasks.Go(func() { c.available(ctx, ready, k) })
		}
	}
	var err error
	if o.Node, err = node.New(&node.Options{Log: c.log, Owners: []string{flannel.DefaultOwner}, Offload: c.Offload}); err != nil {
		return err
	}
	defer o.Node.Close()
	d, err := New(&c.cfg, o)
	if err != nil {
		return err
	}
	c.daemon.Store(d)
	var refused error
	applied := make(chan struct{})
	d.usable = func() error { <-applied; return refused }
	tasks.Go(func() { // the kernel looks through programs for 50 ms: etcd answers meanwhile
		defer close(applied)
		if refused = o.Node.Apply(&node.Config{Datapath: c.datapath}); refused != nil {
			cancel()
			return
		}
		tasks.Go(func() { o.Node.Run(ctx) })
	})
	err = d.Run(ctx)
	<-applied
	return cmp.Or(refused, err)
}

func (c *command) canMakePods() bool {
	d := c.daemon.Load()
	return d != nil && d.Ready()
}

// ready tells who has started the program that pods can be made.
func (c *command) ready(s flannel.Status, mtu int) {
	if err := c.notify("READY=1"); err != nil {
		c.log.Warn("vxflanneld: systemd", "err", err)
	}
	fmt.Fprintf(c.Stdout, "ready subnet=%s public=%v backend=%s mtu=%d\n", s.Own.Subnet.Key(), cmp.Or(s.Own.IPv4.PublicIP, s.Own.IPv6.PublicIP), s.Network.Backend.Type, mtu)
}

// notify tells systemd, if it asks.
func (c *command) notify(state string) error {
	for _, e := range c.env {
		if path, ok := strings.CutPrefix(e, "NOTIFY_SOCKET="); ok && path != "" {
			conn, err := net.Dial("unixgram", path)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write([]byte(state))
			return err
		}
	}
	return nil
}

// serve answers whether the program runs, and whether pods can be made.
func serve(ctx context.Context, l net.Listener, ready func() bool) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "vxflanneld is running") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if !ready() {
			http.Error(w, "vxflanneld is not ready yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "vxflanneld is ready")
	})
	const most = 5 * time.Second // also of a connection without a request
	s := &http.Server{Handler: mux, ReadTimeout: most, WriteTimeout: most}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	s.Serve(l)
}
