package arrows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// Each exported field of a type named Stats or FooStats has a snake_case json tag of its own, or "-".
func TestStatsTags(t *testing.T) {
	types := 0
	for pkg := range allowed {
		files := check.Must(filepath.Glob(filepath.Join("../..", pkg, "*.go")))(t)
		for _, file := range files {
			f := check.Must(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
			ast.Inspect(f, func(n ast.Node) bool {
				x, ok := n.(*ast.TypeSpec)
				if !ok || !x.Name.IsExported() || !strings.HasSuffix(x.Name.Name, "Stats") {
					return true
				}
				types++
				ast.Inspect(x, func(n ast.Node) bool {
					field, ok := n.(*ast.Field)
					if !ok || len(field.Names) == 0 || !field.Names[0].IsExported() {
						return true
					}
					var text string
					if field.Tag != nil {
						text, _ = strconv.Unquote(field.Tag.Value)
					}
					tag, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
					if len(field.Names) > 1 || tag != "-" && !snakeCase.MatchString(tag) {
						t.Errorf("%s: %s.%v: json tag %q; allowed are snake_case and -", file, x.Name, field.Names, tag)
					}
					return true
				})
				return false
			})
		}
	}
	if types < 15 {
		t.Errorf("%d types of statistics, there are more", types)
	}
}
