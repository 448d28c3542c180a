package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// A Daemon makes a node one of a flannel network: it finds the interface to other nodes, keeps a lease, writes the subnet file, and
// follows the leases of others. Make one with [New].
type Daemon struct {
	cfg   Config
	o     Options
	log   *slog.Logger
	begun atomic.Bool
	ready atomic.Bool
	ended atomic.Bool
	leave atomic.Bool // its end is for good
	plane atomic.Pointer[flannel.Plane]

	usable func() error // of the node, before the network comes to it; nil = it is
}

// Options has what a Daemon works with.
type Options struct {
	Node  *node.Node    // needed; the program runs it
	Store flannel.Store // default etcd, as the Config says
	Log   *slog.Logger  // nil = none

	// Ready is called once, from Run, when pods can be made and the subnet file is written; mtu is that of pods, in bytes.
	// nil = nobody is told.
	Ready func(s flannel.Status, mtu int)
}

// New makes a daemon, which [Daemon.Run] runs. The error is [setting.Errors].
func New(cfg *Config, o *Options) (*Daemon, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	d := &Daemon{cfg: *cfg, o: *o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}
	d.cfg.SubnetFile = cmp.Or(cfg.SubnetFile, DefaultSubnetFile)
	return d, nil
}

// Ready reports whether pods can be made: there is a lease, and all others are known.
func (d *Daemon) Ready() bool { return d.ready.Load() }

// Plane returns what keeps the lease; nil until there is an interface.
func (d *Daemon) Plane() *flannel.Plane { return d.plane.Load() }

// Leave makes the end of Run one for good: it removes device, routes, rules and subnet file, which otherwise stay for the next
// process, unless there is one that keeps the subnet file. The lease stays in the store.
func (d *Daemon) Leave() {
	if d.leave.Store(true); d.ended.Load() {
		d.tidy()
	}
}

// Run gets a lease and follows the others until ctx ends, and then returns nil. Other errors are those of [flannel.Plane.Run], and of
// the system. It is called once.
func (d *Daemon) Run(ctx context.Context) error {
	if d.begun.Swap(true) {
		return errors.New("daemon: Daemon.Run: it was called before; make a new Daemon")
	}
	defer func() {
		d.ready.Store(false)
		if d.ended.Store(true); d.leave.Load() {
			d.tidy()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	up, err := d.cfg.uplink()
	if err != nil {
		return err
	}
	if err := makeFolder(d.cfg.SubnetFile); err != nil {
		return err
	}
	release, err := alone(ctx, d.cfg.SubnetFile)
	if err != nil {
		return err
	}
	defer release()
	former, _ := os.ReadFile(d.cfg.SubnetFile)
	if !d.cfg.IPMasq && masqueraded(former) { // not when pods can be made: the store may be away for long
		d.dropRules(ctx)
	}
	store := d.o.Store
	if store == nil {
		kv, err := d.connect(ctx)
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		defer kv.Close()
		store = &flannel.Registry{KV: kv}
	}
	plane, err := d.newPlane(store, up, flannel.PreviousSubnet(former))
	if err != nil {
		return err
	}
	d.plane.Store(plane)
	ended := make(chan error, 1)
	tasks.Go(func() { ended <- plane.Run(ctx) })
	select {
	case err := <-ended:
		return err
	case <-plane.Ready():
	}
	if err := d.announce(ctx, plane, up); err != nil {
		if ctx.Err() != nil {
			return <-ended
		}
		cancel()
		return errors.Join(err, <-ended)
	}
	look := time.NewTicker(5 * time.Second)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-look.C:
			if d.cfg.Mode == TAP {
				updateLinks(plane, up)
			}
		}
	}
}

// connect returns the store of the settings. With a user name it has to reach etcd, for which it tries until ctx ends.
func (d *Daemon) connect(ctx context.Context) (*etcd.Store, error) {
	if err := d.cfg.CheckFiles(); err != nil {
		return nil, conf.Keyed[Config]("", err)
	}
	for {
		kv, err := etcd.Open(ctx, &d.cfg.Config)
		if !errors.Is(err, context.DeadlineExceeded) {
			return kv, err
		}
		d.log.Warn("waiting for etcd", "err", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// newPlane puts together what keeps a lease in a store.
func (d *Daemon) newPlane(store flannel.Store, up *uplink, previous flannel.Subnet) (*flannel.Plane, error) {
	c := &d.cfg
	pc := &flannel.PlaneConfig{Store: store, OneMAC: c.Mode == TAP, PublicIP: up.ipv4, PublicIPv6: up.ipv6, Previous: previous,
		Generation: c.Generation, Margin: c.RenewMargin, Log: d.log}
	if c.PublicIP.IsValid() {
		pc.PublicIP = c.PublicIP
	}
	if c.PublicIPv6.IsValid() {
		pc.PublicIPv6 = c.PublicIPv6
	}
	if c.Mode == TAP {
		pc.Links = up.links
	}
	var tunnel node.Tunnel
	switch {
	case c.Mode == L3 && c.Direct != 0: // the addresses are those of the gateway there, not of the host
		tunnel.Gateway, tunnel.Gateway6 = c.Gateway, c.Gateway6
	case up.ipv4.IsValid() && (pc.PublicIP != up.ipv4 || pc.PublicIPv6 != up.ipv6): // behind a NAT
		tunnel.Local, tunnel.Local6 = up.ipv4, up.ipv6
	case !up.ipv4.IsValid() && !pc.PublicIP.IsValid() && pc.PublicIPv6 != up.ipv6: // likewise, without IPv4
		tunnel.Local = up.ipv6
	}
	var err error
	if c.Mode == TAP {
		pc.Shape, err = d.hosted(tunnel, up)
	} else {
		pc.Shape, err = routed.New(&routed.Config{Node: d.o.Node, Tunnel: tunnel, VRF: c.VRF, Pods: c.Pods, Direct: c.Direct, Log: d.log})
	}
	if err != nil {
		return nil, err
	}
	pc.Shape = shape{pc.Shape, d}
	return flannel.NewPlane(pc)
}

// A shape is one that opens when the node is usable, and closes for good when the daemon leaves.
type shape struct {
	flannel.Shape
	d *Daemon
}

func (s shape) Open(n *flannel.Network, own *flannel.Own, generation int) (m flannel.MapperConfig, err error) {
	if f := s.d.usable; f != nil {
		if err := f(); err != nil {
			return m, err
		}
	}
	return s.Shape.Open(n, own, generation)
}

func (s shape) Close(lost bool) error { return s.Shape.Close(lost || s.d.leave.Load()) }

// announce sets up masquerading, writes the subnet file and tells that pods can be made, in this order.
func (d *Daemon) announce(ctx context.Context, plane *flannel.Plane, up *uplink) error {
	s := plane.Status()
	if d.cfg.IPMasq {
		if err := nft(ctx, masquerade(s.Network, s.Own.Subnet, !d.cfg.NoFullyRandom)); err != nil {
			return err
		}
	} else {
		d.dropRules(ctx)
	}
	f := flannel.SubnetFile{Network: flannel.Subnet{IPv4: s.Network.IPv4.Network, IPv6: s.Network.IPv6.Network}, Subnet: s.Own.Subnet, MTU: s.Network.MTU(up.mtu), IPMasq: d.cfg.IPMasq}
	if err := replace(d.cfg.SubnetFile, f.Format()); err != nil {
		return fmt.Errorf("subnet file: %w", err)
	}
	d.ready.Store(true)
	debug.FreeOSMemory() // a start with many leases takes twice what is kept
	if d.o.Ready != nil {
		d.o.Ready(s, f.MTU)
	}
	return nil
}

// tidy removes what the next process would need, unless another one has it now.
func (d *Daemon) tidy() {
	release, ok := keep(d.cfg.SubnetFile)
	if !ok {
		return
	}
	defer release()
	err := d.forget()
	if e := os.Remove(d.cfg.SubnetFile); !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	if d.cfg.IPMasq {
		err = errors.Join(err, nft(context.Background(), noMasquerade))
	}
	if err != nil {
		d.log.Warn("flannel: what is left", "err", err)
	}
}

// updateLinks has the plane know the addresses of the uplink, which say who is on the same link.
func updateLinks(plane *flannel.Plane, up *uplink) {
	i, err := net.InterfaceByName(up.name)
	if err != nil {
		return
	}
	if links := addresses(*i); !slices.Equal(links, up.links) {
		if up.links = links; plane.SetLinks(links) != nil {
			up.links = nil // again
		}
	}
}

// replace writes a file at once, so that nobody reads a part of it.
func replace(path string, b []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".subnet.env")
	if x, ok := errors.AsType[*os.PathError](err); ok { // by the name that is always the same: an error is said once
		x.Path = path
	}
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
