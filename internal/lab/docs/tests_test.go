package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

var (
	tested = regexp.MustCompile(`\b([a-z0-9]+)\.(Test[A-Z]\w*)`)
	folder = regexp.MustCompile(`\[([a-z0-9]+)\]\((\.\./[a-z0-9/]+)\)`)
)

// The tests that docs/interoperability.md names are in the folders that it names. Each row has one.
func TestInteroperability(t *testing.T) {
	text := check.Must(os.ReadFile(filepath.Join(root, "docs/interoperability.md")))(t)
	_, tables, _ := strings.Cut(string(text), "\n## VTEPs")
	folders := map[string]string{}
	for _, m := range folder.FindAllStringSubmatch(string(text), -1) {
		folders[m[1]] = filepath.Join(root, "docs", m[2])
	}
	n := 0
	for line := range strings.Lines(tables) {
		names := tested.FindAllStringSubmatch(line, -1)
		if strings.HasPrefix(line, "| ") && len(names) == 0 && !strings.HasPrefix(line, "| | ") {
			t.Errorf("no test: %s", line)
		}
		for _, m := range names {
			n++
			files, _ := filepath.Glob(filepath.Join(folders[m[1]], "*_test.go"))
			if folders[m[1]] == "" || !slices.ContainsFunc(files, func(file string) bool {
				code, _ := os.ReadFile(file)
				return strings.Contains(string(code), "\nfunc "+m[2]+"(")
			}) {
				t.Errorf("%s: no such test", m[0])
			}
		}
	}
	if n < 50 {
		t.Errorf("%d tests", n)
	}
}
