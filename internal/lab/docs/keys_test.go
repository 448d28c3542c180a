package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// key is a setting with its place in the file, as pages write it.
var key = regexp.MustCompile("`((?:[a-zA-Z]+(?:\\[\\])?\\.)*[a-zA-Z]+(?:\\[\\])?)\\.([a-zA-Z][a-zA-Z0-9]*)(?:\\[\\])?`")

// The settings that pages name by their place in the file are in docs/settings.md.
func TestKeys(t *testing.T) {
	settings := check.Must(os.ReadFile(filepath.Join(root, "docs/settings.md")))(t)
	n := 0
	for _, p := range pages(t) {
		text := check.Must(os.ReadFile(filepath.Join(root, p.name)))(t)
		for _, m := range key.FindAllStringSubmatch(string(text), -1) {
			_, section, ok := strings.Cut(string(settings), "\n## `"+m[1]+"`\n")
			if !strings.Contains(m[1], "[]") && (!ok || unicode.IsUpper(rune(m[2][0]))) {
				continue // of Go, or a file
			}
			n++
			section, _, _ = strings.Cut(section, "\n## ")
			if !ok || !strings.Contains(section, "\n| `"+m[2]+"` |") {
				t.Errorf("%s: %s is no setting", p.name, m[0])
			}
		}
	}
	if n < 20 {
		t.Errorf("%d settings", n)
	}
}
