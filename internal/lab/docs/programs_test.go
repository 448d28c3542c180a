package docs

import (
	"strings"
	"testing"
)

// A program of docs/programs has at most 30 lines beside its imports and empty ones; what a port
// of its own has before main is counted by itself.
func TestProgramsAreShort(t *testing.T) {
	programs := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if !strings.HasPrefix(p.name, "docs/programs/") || b.Lang != "go" {
				continue
			}
			programs++
			_, code, _ := strings.Cut(b.Text, "\n)\n")
			for _, part := range strings.SplitAfter(code, "return nil\n}\n\nfunc main") {
				n := 0
				for line := range strings.Lines(part) {
					if strings.TrimSpace(line) != "" {
						n++
					}
				}
				if n > 30 {
					t.Errorf("%s: %d lines", p.name, n)
				}
			}
		}
	}
	if programs < 7 {
		t.Errorf("%d programs", programs)
	}
}
