package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	mark    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// What pages link to in the repository is there, headings too.
func TestLinks(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, p.name))
		check.OK(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			n++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := p.name
			if file != "" {
				to = path.Join(path.Dir(p.name), file)
			}
			there, err := os.ReadFile(filepath.Join(root, to))
			if _, stat := os.Stat(filepath.Join(root, to)); stat != nil {
				t.Errorf("%s: %s is not there", p.name, m[1])
			} else if anchor != "" && (err != nil || !hasHeading(string(there), anchor)) {
				t.Errorf("%s: %s has no such heading", p.name, m[1])
			}
		}
	}
	if n == 0 {
		t.Error("no page has a link")
	}
}

// A reader of README.md finds every page of docs by its links.
func TestPagesAreFound(t *testing.T) {
	found := map[string]bool{"README.md": true}
	for next := []string{"README.md"}; len(next) > 0; {
		name := next[0]
		next = next[1:]
		text := check.Must(os.ReadFile(filepath.Join(root, name)))(t)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			if to := path.Join(path.Dir(name), file); strings.HasSuffix(file, ".md") && !strings.Contains(file, "://") && !found[to] {
				found[to] = true
				next = append(next, to)
			}
		}
	}
	for _, p := range pages(t) {
		if !found[p.name] {
			t.Errorf("no link leads to %s", p.name)
		}
	}
}

// hasHeading reports whether a page has a heading with an anchor, as GitHub makes them.
func hasHeading(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		if strings.ReplaceAll(mark.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
