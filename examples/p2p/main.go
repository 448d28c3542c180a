// P2p connects a TAP or TUN device to a tunnel, VXLAN by default.
//
//	p2p -local 10.0.0.1 -remote 10.0.0.2 -id 100
//	ip addr add 192.168.7.1/24 dev vxs0
//
// The peer can be another p2p or the kernel:
//
//	ip link add vx0 type vxlan id 100 local 10.0.0.2 remote 10.0.0.1 dstport 4789
//
// With -type ipip it is an IP tunnel between two hosts on a TUN device, like the kernel's ipip, sit and ip6tnl devices.
// With -type gpe it is VXLAN-GPE, on a TAP or, with -tun, a TUN.
//
// P2p requires CAP_NET_ADMIN, or a device made for the user with "ip tuntap add". SIGUSR1 prints a line of statistics,
// SIGINT and SIGTERM stop the program. See tunnel for how it uses the library.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
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
	if err := tunnel(ctx, o, stdout, stderr); err != nil {
		complain(stderr, err)
		return 1
	}
	return 0
}

// complain prints an error on one line.
func complain(w io.Writer, err error) {
	fmt.Fprintln(w, "p2p:", strings.ReplaceAll(err.Error(), "\n", "; "))
}
