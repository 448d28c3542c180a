package fuzz

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var target = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// Every fuzz target of the module keeps a corpus beside it, which go test runs: small, since
// everybody who clones has it.
func TestCorpora(t *testing.T) {
	const most, largest = 150, 16 << 10
	targets, bytes := 0, int64(0)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range target.FindAllSubmatch(text, -1) {
			targets++
			corpus := filepath.Join(filepath.Dir(path), "testdata", "fuzz", string(m[1]))
			files, _ := os.ReadDir(corpus)
			if len(files) == 0 || len(files) > most {
				t.Errorf("%s: %d files, want 1 to %d", corpus, len(files), most)
			}
			for _, f := range files {
				info, err := f.Info()
				if err != nil {
					return err
				}
				if bytes += info.Size(); info.Size() > largest {
					t.Errorf("%s: %d bytes, want %d at most", filepath.Join(corpus, f.Name()), info.Size(), largest)
				}
			}
		}
		return nil
	})
	if err != nil || targets < 40 || bytes > 1<<20 {
		t.Errorf("%d targets, %d bytes, %v", targets, bytes, err)
	}
}
