package daemon

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/hosted"
	"github.com/vxswitch/vxswitch/node"
)

// Main is the program. It runs until ctx ends, and returns the exit status: 0, 1 after a failure, 2 for a wrong flag. version
// is what -version prints. open opens the store in Kubernetes, nil if the program has none: it comes from outside so that who imports
// this package does not link Kubernetes' client.
func Main(ctx context.Context, args, env []string, version string, stdout, stderr io.Writer, open func(*Cluster) (ClusterStore, error)) int {
	o, err := parse(args, env)
	if err == nil && o.kubernetes && open == nil {
		err = errors.New("-kube-subnet-mgr: this program is built without Kubernetes")
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err == nil && o.version:
		fmt.Fprintln(stdout, version)
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "vxflanneld:", oneLine(err))
		return 2
	}
	level := slog.LevelWarn
	if o.verbose > 0 {
		level = slog.LevelInfo
	}
	d := &daemon{options: o, log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})), stdout: stdout, env: env, open: open}
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(stderr, "vxflanneld:", oneLine(err))
		return 1
	}
	return 0
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// A daemon is the running program.
type daemon struct {
	*options
	log    *slog.Logger
	stdout io.Writer
	env    []string
	open   func(*Cluster) (ClusterStore, error)
	ready  atomic.Bool
	tell   func(context.Context) error // that pods can be made; nil = nobody
}

func (d *daemon) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	if d.healthzPort != 0 {
		l, err := net.Listen("tcp", net.JoinHostPort(d.healthzIP, strconv.Itoa(d.healthzPort)))
		if err != nil {
			return fmt.Errorf("-healthz-port: %w", err)
		}
		tasks.Go(func() { d.serve(ctx, l) })
	}
	store, done, err := d.store(ctx)
	if err != nil {
		return err
	}
	defer done()
	up, err := d.uplink()
	if err != nil {
		return err
	}
	n, err := node.New(&node.Options{Log: d.log, Owners: []string{flannel.DefaultOwner}})
	if err != nil {
		return err
	}
	defer n.Close()
	sc := &hosted.Config{Node: n, Device: d.device, Persistent: true, Link: up.name, LinkMTU: up.mtu, Log: d.log}
	pc := &flannel.PlaneConfig{Store: store, OneMAC: true, PublicIP: up.ipv4, PublicIPv6: up.ipv6,
		Links: up.links, Generation: d.generation, Margin: d.renewMargin(), Log: d.log}
	if b, err := os.ReadFile(d.subnetFile); err == nil {
		pc.Previous = flannel.PreviousSubnet(b)
	}
	if d.publicIP != "" {
		pc.PublicIP = netip.MustParseAddr(d.publicIP)
	}
	if d.publicIPv6 != "" {
		pc.PublicIPv6 = netip.MustParseAddr(d.publicIPv6)
	}
	if up.ipv4.IsValid() && (pc.PublicIP != up.ipv4 || pc.PublicIPv6 != up.ipv6) { // behind a NAT
		sc.Tunnel.Local, sc.Tunnel.Local6 = up.ipv4, up.ipv6
	}
	shape, err := hosted.New(sc)
	if err != nil {
		return err
	}
	pc.Shape = shape
	plane, err := flannel.NewPlane(pc)
	if err != nil {
		return err
	}
	tasks.Go(func() { n.Run(ctx) })
	ended := make(chan error, 1)
	tasks.Go(func() { ended <- plane.Run(ctx) })
	select {
	case err := <-ended:
		return err
	case <-plane.Ready():
	}
	if err := d.isReady(ctx, plane, shape, up); err != nil {
		return errors.Join(err, stop(cancel, ended))
	}
	look := time.NewTicker(5 * time.Second)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-look.C:
			d.follow(plane, up)
			d.available(ctx)
		}
	}
}

// stop ends a plane and returns its error.
func stop(cancel func(), ended chan error) error {
	cancel()
	return <-ended
}

// isReady tells others that pods can be made: the file is last.
func (d *daemon) isReady(ctx context.Context, plane *flannel.Plane, shape *hosted.Shape, up *uplink) error {
	s := plane.Status()
	if d.masq {
		if err := nft(ctx, masquerade(s.Network, s.Own.Subnet, !d.noRandom)); err != nil {
			return err
		}
	}
	f := flannel.SubnetFile{Network: flannel.Subnet{IPv4: s.Network.IPv4.Network, IPv6: s.Network.IPv6.Network}, Subnet: s.Own.Subnet, MTU: shape.MTU(s.Network), IPMasq: d.masq}
	if err := replace(d.subnetFile, f.Format()); err != nil {
		return fmt.Errorf("-subnet-file: %w", err)
	}
	d.ready.Store(true)
	debug.FreeOSMemory() // a start with many leases takes twice what is kept
	if err := d.notify("READY=1"); err != nil {
		d.log.Warn("vxflanneld: systemd", "err", err)
	}
	d.available(ctx)
	fmt.Fprintf(d.stdout, "ready subnet=%s public=%v backend=%s mtu=%d\n", s.Own.Subnet.Key(), cmp.Or(s.Own.IPv4.PublicIP, s.Own.IPv6.PublicIP), s.Network.Backend.Type, f.MTU)
	return nil
}

// follow looks at the addresses of the uplink, which say who is on the same link.
func (d *daemon) follow(plane *flannel.Plane, up *uplink) {
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

// notify tells systemd, if it asks.
func (d *daemon) notify(state string) error {
	for _, e := range d.env {
		if path, ok := strings.CutPrefix(e, "NOTIFY_SOCKET="); ok && path != "" {
			c, err := net.Dial("unixgram", path)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte(state))
			return err
		}
	}
	return nil
}

// serve answers whether the program runs, and whether pods can be made.
func (d *daemon) serve(ctx context.Context, l net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "vxflanneld is running") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if !d.ready.Load() {
			http.Error(w, "vxflanneld is not ready yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "vxflanneld is ready")
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	s.Serve(l)
}
