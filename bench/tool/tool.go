// Package tool is what the programs under bench have in common: how they begin and end,
// read flags, choose what to measure, name the machine, sum up samples, draw and save results.
package tool

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
	"syscall"
)

// Main runs a program until it returns its exit status or is interrupted; a second signal
// ends it at once.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Status prints what went wrong, if anything did, on one line after the program's name, and
// returns the exit status: 2 for flags that are wrong, 1 for a measurement that failed.
// Flags that only asked for help are no error.
func Status(stderr io.Writer, name string, flags, measured error) int {
	switch {
	case errors.Is(flags, flag.ErrHelp):
		return 0
	case flags != nil:
		fmt.Fprintf(stderr, "%s: %v\n", name, flags)
		return 2
	case measured != nil:
		fmt.Fprintf(stderr, "%s: %v\n", name, measured)
		return 1
	}
	return 0
}

// Parse reads the command line of a program that takes flags only. Asked for help it prints
// them, and returns flag.ErrHelp.
func Parse(fs *flag.FlagSet, args []string, usage io.Writer) error {
	fs.SetOutput(io.Discard) // an error is one line, and who called prints it
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(usage, "usage: %s [flags]\n", fs.Name())
		fs.SetOutput(usage)
		fs.PrintDefaults()
		return err
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("argument %q: allowed are flags only", fs.Arg(0))
	}
	return nil
}

// Names returns what things are called.
func Names[T fmt.Stringer](all []T) (list []string) {
	for _, x := range all {
		list = append(list, x.String())
	}
	return list
}

// Pick returns those of all that a list of names has, separated by commas, in the order of
// all.
func Pick[T fmt.Stringer](all []T, list string) (some []T, err error) {
	want := strings.Split(list, ",")
	for _, w := range want {
		if !slices.Contains(Names(all), w) {
			return nil, fmt.Errorf("%q is none of %s", w, strings.Join(Names(all), ", "))
		}
	}
	for _, x := range all {
		if slices.Contains(want, x.String()) {
			some = append(some, x)
		}
	}
	return some, nil
}
