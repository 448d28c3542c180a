package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit status: 1 if something could not be measured
// or grows faster than it may.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "growth:", err)
		return 2
	}
	if err := growth(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "growth:", err)
		return 1
	}
	return 0
}

// options are what the flags say.
type options struct {
	passes    int
	time      time.Duration // of one measurement
	sweeps    []sweep
	json, svg string // files, "" for none
}

func parse(args []string, usage io.Writer) (o options, err error) {
	o.sweeps = sweeps()
	fs := flag.NewFlagSet("growth", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.IntVar(&o.passes, "passes", 9, "`N` passes")
	fs.DurationVar(&o.time, "time", 100*time.Millisecond, "`DURATION` of a measurement")
	fs.StringVar(&o.json, "json", "", "`FILE` to write the results to as JSON")
	fs.StringVar(&o.svg, "svg", "", "`FILE` to write the results to as line charts")
	fs.Func("sweep", "`NAME[,NAME...]` of the sweeps (default "+names(o.sweeps)+")", func(s string) (err error) {
		o.sweeps, err = pick(sweeps(), s)
		return err
	})
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: growth [flags]")
		fs.SetOutput(usage)
		fs.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case fs.NArg() > 0:
		return o, fmt.Errorf("argument %q: allowed are flags only", fs.Arg(0))
	case o.passes < 1 || o.passes > 1000:
		return o, errors.New("flag -passes: allowed are 1 to 1000")
	case o.time < time.Millisecond || o.time > time.Minute:
		return o, errors.New("flag -time: allowed are 1ms to 1m")
	}
	return o, nil
}

func names(all []sweep) string {
	var list []string
	for _, s := range all {
		list = append(list, s.name)
	}
	return strings.Join(list, ",")
}

// pick returns those of all that are in the list, in the order of all.
func pick(all []sweep, list string) (some []sweep, err error) {
	want := strings.Split(list, ",")
	for _, w := range want {
		if !slices.ContainsFunc(all, func(s sweep) bool { return s.name == w }) {
			return nil, fmt.Errorf("%q is none of %s", w, names(all))
		}
	}
	for _, s := range all {
		if slices.Contains(want, s.name) {
			some = append(some, s)
		}
	}
	return some, nil
}
