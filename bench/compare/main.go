package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if inside(os.Args[1:]) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit status: 1 if anything could not be measured.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 2
	}
	if err := compare(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 1
	}
	return 0
}

// options are what the flags say.
type options struct {
	rounds, seconds int
	cases           []testCase
	contenders      []contender
	json, svg       string // files, "" for none
}

func parse(args []string, usage io.Writer) (o options, err error) {
	o.cases, o.contenders = cases(), contenders()
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.IntVar(&o.rounds, "rounds", 4, "`N` rounds")
	fs.IntVar(&o.seconds, "seconds", 2, "`N` seconds a measurement, whole ones as iperf3 counts them")
	fs.StringVar(&o.json, "json", "", "`FILE` to write the results to as JSON")
	fs.StringVar(&o.svg, "svg", "", "`FILE` to write the results to as a bar chart")
	all := strings.Join(names(o.cases), ",")
	fs.Func("case", "`NAME[,NAME...]` of the cases (default "+all+")", func(s string) (err error) {
		o.cases, err = pick(cases(), s)
		return err
	})
	all = strings.Join(names(o.contenders), ",")
	fs.Func("contender", "`NAME[,NAME...]` of the contenders (default "+all+")", func(s string) (err error) {
		o.contenders, err = pick(contenders(), s)
		return err
	})
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: compare [flags]")
		fs.SetOutput(usage)
		fs.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case fs.NArg() > 0:
		return o, fmt.Errorf("argument %q: allowed are flags only", fs.Arg(0))
	case o.rounds < 1 || o.rounds > 1000:
		return o, errors.New("flag -rounds: allowed are 1 to 1000")
	case o.seconds < 1 || o.seconds > 60:
		return o, errors.New("flag -seconds: allowed are 1 to 60")
	}
	return o, nil
}

// A named thing is chosen by a flag.
type named interface{ String() string }

func names[T named](all []T) (list []string) {
	for _, x := range all {
		list = append(list, x.String())
	}
	return list
}

// pick returns those of all that are in the list, in the order of all.
func pick[T named](all []T, list string) (some []T, err error) {
	want := strings.Split(list, ",")
	for _, w := range want {
		if !slices.Contains(names(all), w) {
			return nil, fmt.Errorf("%q is none of %s", w, strings.Join(names(all), ", "))
		}
	}
	for _, x := range all {
		if slices.Contains(want, x.String()) {
			some = append(some, x)
		}
	}
	return some, nil
}

// able says why this machine cannot run the comparison, or nil.
func able() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("network namespaces: %w on %s", errors.ErrUnsupported, runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root: run it with sudo")
	}
	for _, tool := range []struct{ name, pkg string }{
		{"ip", "iproute2"}, {"ethtool", "ethtool"}, {"iperf3", "iperf3"}, {"go", "golang-go"},
	} {
		if _, err := exec.LookPath(tool.name); err != nil {
			return fmt.Errorf("%s is not installed: install the Debian package %s", tool.name, tool.pkg)
		}
	}
	return nil
}
