package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The page is what the sources say: every reason, and nothing else.
func TestPage(t *testing.T) {
	want := check.Must(page("../.."))(t)
	got := check.Must(os.ReadFile("../../docs/drops.md"))(t)
	if !bytes.Equal(got, want) {
		t.Error("docs/drops.md: run go generate ./frame")
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllSubmatch(got, -1)
	if len(rows) != int(frame.NumReasons)-1 {
		t.Fatalf("%d rows, want %d", len(rows), frame.NumReasons-1)
	}
	for i, row := range rows {
		if r := frame.Reason(i + 1); string(row[1]) != r.String() {
			t.Errorf("row %d is %s, want %v", i, row[1], r)
		}
	}
}

// What advice names is there: keys of the file, and commands of vxsctl.
func TestAdvice(t *testing.T) {
	settings := check.Must(os.ReadFile("../../docs/settings.md"))(t)
	help := check.Must(os.ReadFile("../../cmd/vxsctl/help.go"))(t)
	word := regexp.MustCompile("`([^`]+)`")
	n := 0
	for r, text := range advice {
		if r > 0 && !strings.HasSuffix(text, ".") {
			t.Errorf("%v: %q has no end", frame.Reason(r), text)
		}
		for _, m := range word.FindAllStringSubmatch(text, -1) {
			n++
			switch first, command, more := strings.Cut(m[1], " "); {
			case first == "vxsctl":
				command, _, _ = strings.Cut(command, " ")
				if !regexp.MustCompile(`(?m)^  ([a-z]+, )?` + command + `\b`).Match(help) {
					t.Errorf("%v: vxsctl has no command %q", frame.Reason(r), command)
				}
			case more, first == "dstport", first == "ping": // of others
			case !bytes.Contains(settings, []byte("\n| `"+first+"` |")):
				t.Errorf("%v: the file has no key %q", frame.Reason(r), first)
			}
		}
	}
	if n < 30 {
		t.Errorf("%d words", n)
	}
}

// A reason that nothing is said of is an error, and so is a source that is not there.
func TestNoComment(t *testing.T) {
	if _, err := page(t.TempDir()); err == nil {
		t.Error("no error without a source")
	}
	was := advice[frame.Short]
	defer func() { advice[frame.Short] = was }()
	if advice[frame.Short] = ""; was == "" {
		t.Error("no advice")
	} else if _, err := page("../.."); err == nil || !strings.Contains(err.Error(), "short") {
		t.Errorf("%v", err)
	}
}
