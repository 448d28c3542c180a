package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/vxswitch/vxswitch/bench/tool"
)

func main() {
	if inside(os.Args[1:]) {
		return
	}
	tool.Main(run)
}

// run is the program. It returns the exit status: 1 if anything could not be measured.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, wrong := parse(args, stderr)
	var err error
	if wrong == nil {
		err = compare(ctx, o, stdout, stderr)
	}
	return tool.Status(stderr, "compare", wrong, err)
}

// options are what the flags say.
type options struct {
	rounds, seconds int
	cases           []testCase
	contenders      []contender
	tool.Files
	bars string // a file, "" for none
	from string // a report to draw, in place of measuring
}

func parse(args []string, usage io.Writer) (o options, err error) {
	o.cases, o.contenders = cases(), contenders()
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.IntVar(&o.rounds, "rounds", 4, "`N` rounds")
	fs.IntVar(&o.seconds, "seconds", 2, "`N` seconds a measurement, whole ones as iperf3 counts them")
	o.Flags(fs, "a bar chart")
	all := strings.Join(tool.Names(o.cases), ",")
	fs.StringVar(&o.bars, "bars", "", "`FILE` to draw the picture of the README to")
	fs.StringVar(&o.from, "from", "", "`FILE` that -json has written: its results, nothing is measured")
	fs.Func("case", "`NAME[,NAME...]` of the cases (default "+all+")", func(s string) (err error) {
		o.cases, err = tool.Pick(cases(), s)
		return err
	})
	all = strings.Join(tool.Names(o.contenders), ",")
	fs.Func("contender", "`NAME[,NAME...]` of the contenders (default "+all+")", func(s string) (err error) {
		o.contenders, err = tool.Pick(contenders(), s)
		return err
	})
	return o, cmp.Or(tool.Parse(fs, args, usage), tool.Within("rounds", o.rounds, 1, 1000, "1 to 1000"), tool.Within("seconds", o.seconds, 1, 60, "1 to 60"))
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
