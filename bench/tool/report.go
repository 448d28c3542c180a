package tool

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Files are where a program writes its results beside the table it prints, "" for nowhere.
type Files struct{ JSON, SVG string }

// Flags adds a flag for each file; plot says what the SVG is.
func (f *Files) Flags(fs *flag.FlagSet, plot string) {
	fs.StringVar(&f.JSON, "json", "", "`FILE` to write the results to as JSON")
	fs.StringVar(&f.SVG, "svg", "", "`FILE` to write the results to as "+plot)
}

// Save writes the files that are asked for.
func (f Files) Save(results any, plot func() string) error {
	if f.JSON != "" {
		b, err := json.MarshalIndent(results, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.JSON, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	if f.SVG == "" {
		return nil
	}
	return os.WriteFile(f.SVG, []byte(plot()), 0o644)
}

// Within is an error unless a flag's value is one from low to high.
func Within[T cmp.Ordered](name string, v, low, high T, allowed string) error {
	if v < low || v > high {
		return fmt.Errorf("flag -%s: allowed are %s", name, allowed)
	}
	return nil
}

// Spread returns the smallest of the samples, their median and the largest one; zeros for
// none.
func Spread(samples []float64) (low, median, high float64) {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	if n == 0 {
		return 0, 0, 0
	}
	return s[0], (s[(n-1)/2] + s[n/2]) / 2, s[n-1]
}

// Number is a value with three digits, or all that stand before the point; "-" is no value.
func Number(v float64) string {
	digits := 2
	switch {
	case math.IsNaN(v):
		return "-"
	case v >= 100:
		digits = 0
	case v >= 10:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// Machine says what is measured on: how many processors of which model, then more, then the
// version of Go.
func Machine(more ...string) string {
	model := runtime.GOARCH
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d x %s, %s, %s", runtime.NumCPU(), model, strings.Join(more, ", "), runtime.Version())
}
