// P2p is a VXLAN tunnel on a TAP device: what the host sends out of the device
// reaches the hosts behind the peers, and the other way round.
//
//	p2p -local 10.0.0.1 -remote 10.0.0.2 -id 100
//	ip addr add 192.168.7.1/24 dev vxs0
//
// The far end may be another p2p, or the kernel:
//
//	ip link add vx0 type vxlan id 100 local 10.0.0.2 remote 10.0.0.1 dstport 4789
//
// It needs CAP_NET_ADMIN, or a device made for the user beforehand with "ip tuntap
// add". SIGUSR1 prints a line of statistics, SIGINT and SIGTERM end the program.
//
// It is also the model of how the library is used: see tunnel.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(stdout)
		return 0
	}
	if err != nil {
		complain(stderr, err)
		return 2
	}
	if err := tunnel(ctx, o, stdout); err != nil {
		complain(stderr, err)
		return 1
	}
	return 0
}

// complain prints an error on one line.
func complain(w io.Writer, err error) {
	fmt.Fprintln(w, "p2p:", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// tunnel runs the tunnel until ctx is done or a port fails:
//
//	kernel -- TAP --- VSI --- VTEP -- UDP -- peers
func tunnel(ctx context.Context, o options, out io.Writer) error {
	u, err := underlay.ListenUDP(netip.AddrPortFrom(o.local, o.dstport), nil)
	if err != nil {
		return localError(err)
	}
	defer u.Close()
	v, err := vtep.New(nil, u)
	if err != nil {
		return err
	}
	if err := v.SetFlood(o.id, o.flood()...); err != nil {
		return err
	}
	mtu := v.MTU(0) - encap.EthernetLen // of the device: without the inner Ethernet header
	tap, err := port.OpenTAP(o.dev, &port.DeviceConfig{MTU: mtu})
	if err != nil {
		return deviceError(o, mtu, err)
	}
	defer tap.Close()

	sw, err := vswitch.New(nil)
	if err != nil {
		return err
	}
	defer sw.Close()
	vsi, err := sw.VSI(o.id, nil)
	if err != nil {
		return err
	}
	far, err := vsi.Attach(v, uint32(o.id))
	if err != nil {
		return err
	}
	if _, err := vsi.Attach(tap, 0); err != nil {
		return err
	}

	asked := make(chan os.Signal, 1)
	notifyStats(asked)
	defer signal.Stop(asked)
	failed := make(chan error, 1)
	go watch(sw.Events(), failed)
	go sw.Run(context.Background()) // not ctx: the last statistics are taken before it closes the ports
	fmt.Fprintf(out, "ready dev=%s type=vxlan id=%d local=%v mtu=%d\n", tap.Name(), o.id, u.LocalAddr(), mtu)
	for {
		select {
		case <-asked:
			fmt.Fprintln(out, takeStats(sw, v, far))
			continue
		case <-ctx.Done():
		case err = <-failed:
		}
		last := takeStats(sw, v, far)
		sw.Close()
		fmt.Fprintln(out, last)
		return err
	}
}

// watch reports the first port that fails. It ends with the switch.
func watch(events *vswitch.Events, failed chan<- error) {
	for {
		ev, err := events.Next(context.Background())
		if err != nil {
			return
		}
		if ev.Kind == frame.EventPortDown && ev.Err != nil {
			failed <- fmt.Errorf("the tunnel is down: %w: was the device deleted? start p2p again", ev.Err)
			return
		}
	}
}
