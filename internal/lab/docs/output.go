package docs

import (
	"regexp"
	"slices"
	"strings"
)

// varying is what differs from one run to the next: any other of its kind will do.
var varying = regexp.MustCompile(`\.\.\.|` + mac + `|` + clock + `|` + duration + `|\s+`)

const (
	mac      = `(?:[0-9a-f]{2}:){5}[0-9a-f]{2}`
	clock    = `\d\d:\d\d:\d\d\.\d+`
	duration = `\b\d[0-9.]* ?(?:ns|µs|ms|s)\b`
)

// Missing returns the first line of an output in a page that is not among what was printed,
// or "".
func Missing(page, printed string) string {
	lines := strings.Split(printed, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	for want := range strings.Lines(page) {
		if want = strings.TrimSpace(want); !slices.ContainsFunc(lines, pattern(want).MatchString) {
			return want
		}
	}
	return ""
}

// pattern matches lines that are equal to one, but for what varies.
func pattern(line string) *regexp.Regexp {
	expr, last := "^", 0
	for _, m := range varying.FindAllStringIndex(line, -1) {
		expr += regexp.QuoteMeta(line[last:m[0]])
		switch found := line[m[0]:m[1]]; {
		case found == "...":
			expr += `.*`
		case strings.TrimSpace(found) == "":
			expr += `\s+`
		case strings.Count(found, ":") == 5:
			expr += mac
		case strings.Contains(found, ":"):
			expr += clock
		default:
			expr += duration
		}
		last = m[1]
	}
	return regexp.MustCompile(expr + regexp.QuoteMeta(line[last:]) + "$")
}
