// Vxswitchd runs a VTEP node from a JSON file with tunnels, ports, segments, gateways, VRFs and policies.
//
//	vxswitchd -config FILE -check     # print errors, or the effective settings
//	vxswitchd -config FILE
//
// SIGHUP or "vxsctl reload" reads the file again and applies the differences under traffic. SIGUSR1 prints a line of
// statistics, SIGINT and SIGTERM stop the program. With a control socket in the file, vxsctl shows and changes the
// tables; with -metrics, Prometheus reads the counters. The program requires CAP_NET_ADMIN.
//
// Package node does the work; this program adds the file, the signals, the socket and the metrics.
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

	"github.com/vxswitch/vxswitch/cmd/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	spareProcs()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `Usage: vxswitchd -config FILE [-check] [-metrics ADDR] | -schema | -version

Run a VTEP node from a JSON file.

  -config FILE    configuration file (required)
  -check          print errors in the file, or the effective settings, and exit
  -metrics ADDR   serve /metrics for Prometheus and /healthz over HTTP, such as on :9470;
                  without a host, on this host's loopback address alone
  -schema         print the JSON schema of the file, for editors, and exit
  -version        print the version and exit

SIGHUP reads the file again, SIGUSR1 prints statistics, SIGINT and SIGTERM stop the program.

Exit status: 0; 1 for errors of the system; 2 for a wrong command line or file.
`

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("vxswitchd", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	file := fs.String("config", "", "")
	check := fs.Bool("check", false, "")
	metrics := fs.String("metrics", "", "")
	print := fs.Bool("schema", false, "")
	show := fs.Bool("version", false, "")
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err == nil && fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case err == nil && *show:
		fmt.Fprintln(stdout, version.Of("vxswitchd"))
		return 0
	case err == nil && *print:
		stdout.Write(schema)
		return 0
	case err == nil && *file == "":
		err = errors.New("flag -config is required")
	case err == nil && *metrics != "":
		*metrics, err = metricsAddr(*metrics)
	}
	if err != nil {
		complain(stderr, err)
		return 2
	}
	asked := newSignals() // before the file is read: they would end the program
	defer asked.stop()
	cfg, err := load(*file)
	if err != nil {
		complain(stderr, err)
		return 2
	}
	if *check {
		stdout.Write(effective(cfg))
		return 0
	}
	if err := serve(ctx, *file, cfg, *metrics, asked, stdout, stderr); err != nil {
		complain(stderr, err)
		return 1
	}
	return 0
}

// complain prints an error on one line, or the errors of a file on a line each.
func complain(w io.Writer, err error) {
	var wrong fileError
	if errors.As(err, &wrong) {
		fmt.Fprintln(w, strings.Join(wrong, "\n"))
		return
	}
	fmt.Fprintln(w, "vxswitchd:", oneLine(err))
}
