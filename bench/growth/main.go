package main

import (
	"cmp"
	"context"
	"flag"
	"io"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
)

func main() { tool.Main(run) }

// run is the program. It returns the exit status: 1 if something could not be measured
// or grows faster than it may.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, wrong := parse(args, stderr)
	var err error
	if wrong == nil {
		err = growth(ctx, o, stdout, stderr)
	}
	return tool.Status(stderr, "growth", wrong, err)
}

// options are what the flags say.
type options struct {
	passes int
	time   time.Duration // of one measurement
	sweeps []sweep
	tool.Files
}

func parse(args []string, usage io.Writer) (o options, err error) {
	o.sweeps = sweeps()
	fs := flag.NewFlagSet("growth", flag.ContinueOnError)
	fs.IntVar(&o.passes, "passes", 9, "`N` passes")
	fs.DurationVar(&o.time, "time", 100*time.Millisecond, "`DURATION` of a measurement")
	o.Flags(fs, "line charts")
	fs.Func("sweep", "`NAME[,NAME...]` of the sweeps (default "+strings.Join(tool.Names(o.sweeps), ",")+")", func(s string) (err error) {
		o.sweeps, err = tool.Pick(sweeps(), s)
		return err
	})
	return o, cmp.Or(tool.Parse(fs, args, usage), tool.Within("passes", o.passes, 1, 1000, "1 to 1000"), tool.Within("time", o.time, time.Millisecond, time.Minute, "1ms to 1m"))
}
