package table

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Each reason for which a route is used nowhere is on the page, with what to do.
func TestReasons(t *testing.T) {
	page := check.Must(os.ReadFile("../../../docs/evpn.md"))(t)
	f, err := parser.ParseFile(token.NewFileSet(), "path.go", nil, 0)
	check.OK(t, err)
	n := 0
	ast.Inspect(f, func(x ast.Node) bool {
		v, ok := x.(*ast.ValueSpec)
		if !ok || len(v.Values) == 0 || !strings.HasPrefix(v.Names[0].Name, "left") {
			return true
		}
		reason, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if n++; err != nil || !strings.Contains(string(page), "\n| `"+reason+"` |") {
			t.Errorf("docs/evpn.md lacks %q, %v", reason, err)
		}
		return true
	})
	if n == 0 {
		t.Error("no reasons")
	}
}
