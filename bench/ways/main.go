package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
)

func main() {
	if inside(os.Args[1:]) {
		return
	}
	tool.Main(run)
}

// run is the program. It returns the exit status: 1 if anything could not be measured.
// A way that the kernel refuses is a result, and no failure.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, wrong := parse(args, stderr)
	var err error
	if wrong == nil {
		var r *report
		if r, err = measure(ctx, o, stderr); r != nil {
			err = errors.Join(err, r.write(stdout, o.json))
		}
	}
	return tool.Status(stderr, "ways", wrong, err)
}

// options are what the flags say.
type options struct {
	rounds int
	each   time.Duration // of one measurement
	json   string        // a file, "" for none
	groups []group
}

func parse(args []string, usage io.Writer) (o options, err error) {
	o.groups = groups()
	fs := flag.NewFlagSet("ways", flag.ContinueOnError)
	fs.IntVar(&o.rounds, "rounds", 5, "`N` rounds")
	seconds := fs.Float64("seconds", 1, "`S` seconds a measurement, also parts of one")
	fs.StringVar(&o.json, "json", "", "`FILE` to write the results to as JSON")
	fs.Func("group", "`LETTERS` of the groups to measure, such as AC (default all)", func(s string) error {
		var some []group
		for _, g := range o.groups {
			if strings.Contains(s, g.letter) {
				some = append(some, g)
			}
		}
		if len(some) != len(s) {
			return fmt.Errorf("%q is not a set of groups", s)
		}
		o.groups = some
		return nil
	})
	switch err := tool.Parse(fs, args, usage); {
	case err != nil:
		return o, err
	case o.rounds < 1 || o.rounds > 1000:
		return o, errors.New("flag -rounds: allowed are 1 to 1000")
	case !(*seconds >= 0.01 && *seconds <= 60):
		return o, errors.New("flag -seconds: allowed are 0.01 to 60")
	}
	o.each = time.Duration(*seconds * float64(time.Second))
	return o, nil
}
