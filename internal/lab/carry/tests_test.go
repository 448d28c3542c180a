package carry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A wrong word in the environment does not run all tests without flows, and pass.
func TestDatapath(t *testing.T) {
	t.Setenv(datapath, "kernal")
	if code := (Suite{}).Run(); code != 2 {
		t.Errorf("exit status %d", code)
	}
}

// All tests that are named exist, once, and there is a reason for what is left out of them.
func TestNames(t *testing.T) {
	for pkg, l := range tests {
		exists, named := map[string]bool{}, map[string]bool{}
		for _, file := range check.Must(filepath.Glob("../../../" + pkg + "/*_test.go"))(t) {
			f := check.Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					exists[d.Name.Name] = true
				}
			}
		}
		for _, test := range l.run {
			if !exists[test] || named[test] {
				t.Errorf("%s: run: %s must be a test, named once", pkg, test)
			}
			named[test] = true
		}
		for _, x := range l.left {
			name, _, _ := strings.Cut(x.test, "/")
			if !slices.Contains(l.run, name) || named[x.test] && name != x.test || x.why == "" {
				t.Errorf("%s: left: %s must be in run, named once, and have a reason, not %q", pkg, x.test, x.why)
			}
			named[x.test] = true
		}
	}
}
