// Quickstart is a VXLAN fabric in one process: three VTEPs joined by real UDP sockets
// on loopback, networks, and hosts that are Go programs. It needs no root and no flags,
// prints each step, and exits with 0 only if it has seen every step happen.
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
	"time"
)

func main() {
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage) }
	if flag.Parse(); flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	err := run(ctx, os.Stdout)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	fmt.Fprint(out, picture)
	f, err := newFabric(ctx, "127.0.0.11", "127.0.0.12", "127.0.0.13")
	if err != nil {
		return err
	}
	defer f.Close()
	// Red is on all three VTEPs, blue on two. Both use the same IP and MAC addresses, because
	// networks are separate. Green has its own addresses and a gateway to red.
	if err := errors.Join(
		f.network(100, netip.MustParsePrefix("192.168.0.254/24"), 0, 1, 2),
		f.network(200, netip.Prefix{}, 0, 1),
		f.network(300, netip.MustParsePrefix("192.168.1.254/24"), 0, 2),
	); err != nil {
		return err
	}
	var red, blue []*host
	for _, at := range []int{0, 1, 2} {
		h, err := f.host("red", 100, at)
		if err != nil {
			return err
		}
		red = append(red, h)
	}
	for _, at := range []int{0, 1} {
		h, err := f.host("blue", 200, at)
		if err != nil {
			return err
		}
		blue = append(blue, h)
	}
	green, err := f.host("green", 300, 2)
	if err != nil {
		return err
	}
	s := &story{out: out, f: f}
	s.step("%v asks who has %v", red[0], red[1].ip)
	s.flooded(ctx, red[0], red[1], red[2])
	s.answered(ctx, red[0], red[1])
	s.silent(blue...)

	s.step("every VTEP on the way has learned where they are")
	s.learned(ctx, red[0], 0, "red1")
	s.learned(ctx, red[0], 1, "127.0.0.11")
	s.learned(ctx, red[0], 2, "127.0.0.11")
	s.learned(ctx, red[1], 0, "127.0.0.12")

	s.step("%v pings %v; both MACs are known, so nobody else hears it", red[0], red[1])
	s.pinged(ctx, red[0], red[1])
	s.silent(red[2])
	s.silent(blue...)

	s.step("%v asks who has %v; vtep3 has heard of it and suppresses the question", red[2], red[0])
	s.suppressed(ctx, red[2], red[0])
	s.silent(red[0], red[1])

	s.step("the same addresses in the other network: %v pings %v", blue[0], blue[1])
	s.flooded(ctx, blue[0], blue[1])
	s.answered(ctx, blue[0], blue[1])
	s.pinged(ctx, blue[0], blue[1])
	s.silent(red...)

	s.step("%v moves from vtep2 to vtep3, and speaks", red[1])
	s.moved(ctx, red[1], 2)
	s.learned(ctx, red[1], 0, "127.0.0.13")
	s.pinged(ctx, red[0], red[1])

	s.step("%v pings %v in another network, through the gateway", red[0], green)
	s.routed(ctx, red[0], green)
	s.silent(blue...)
	if s.err != nil {
		return s.err
	}
	return f.report(out)
}

const usage = `usage: quickstart
It takes no flags and needs no root: a VXLAN fabric in one process tells what happens in it.
`

const picture = `
   red1 blue1            red2 blue2            red3 green3
    |     |               |     |               |     |
  +-+-----+---+         +-+-----+---+         +-+-----+---+
  |   vtep1   |         |   vtep2   |         |   vtep3   |
  +-----+-----+         +-----+-----+         +-----+-----+
        | 127.0.0.11          | 127.0.0.12          | 127.0.0.13
   =====+=====================+=====================+=====  UDP
     red: VNI 100 on all, blue: VNI 200 on two, green: VNI 300
            red and green have a gateway on each VTEP

`
