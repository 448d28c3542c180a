package api

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

var (
	requestLine = regexp.MustCompile(`(?m)^//\t(GET|PUT|POST|DELETE) +(.*(?:\n//\t {20,}.*)?)$`)
	pathOf      = regexp.MustCompile(`^(/v1/[\w/]+)(?:\?(\S*))?,?\s*`)
)

// The list in the package documentation is that of Requests.
func TestRequests(t *testing.T) {
	text := check.Must(os.ReadFile("doc.go"))(t)
	var got, want []string
	for _, m := range requestLine.FindAllStringSubmatch(string(text), -1) {
		var paths []string
		rest := strings.ReplaceAll(m[2], "\n//\t", " ")
		for p := pathOf.FindStringSubmatch(rest); p != nil; p = pathOf.FindStringSubmatch(rest) {
			paths, rest = append(paths, p[0]), rest[len(p[0]):]
		}
		answers := []string{rest}
		if len(paths) > 1 {
			answers = strings.Split(rest, ", ")
		}
		for i, p := range paths {
			got = append(got, m[1]+" "+strings.TrimRight(p, ", ")+" "+strings.Join(strings.Fields(answers[i]), " "))
		}
	}
	name := func(x any) string {
		if t := reflect.TypeOf(x); t != nil && t.Kind() == reflect.Slice {
			return "[" + t.Elem().Name() + " ...]"
		} else if t != nil {
			return t.Name()
		}
		return ""
	}
	for _, x := range Requests {
		target := strings.NewReplacer("{list}", "LIST", "{name}", "NAME").Replace(x.Path)
		for i, p := range x.Params {
			target += string("?&"[min(i, 1)]) + p + "="
		}
		want = append(want, strings.Join(strings.Fields(fmt.Sprint(x.Method, " ", target, " ", name(x.Body), " ", name(x.Answer))), " "))
	}
	for i, line := range got {
		if i >= len(want) || !covers(line, want[i]) {
			t.Errorf("documented %q, want %q", line, want[min(i, len(want)-1)])
		}
	}
	if len(got) != len(want) || len(want) < 24 {
		t.Errorf("%d requests documented, want %d", len(got), len(want))
	}
}

// covers reports whether a line has the words of another in their order: it may say more in words that are no types.
func covers(line, words string) bool {
	var types []string
	for _, w := range strings.Fields(line) {
		if w = strings.Trim(w, ":,"); slices.Contains(strings.Fields(words), w) {
			types = append(types, w)
		}
	}
	return strings.Join(types, " ") == words
}
