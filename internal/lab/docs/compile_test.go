package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/node"
)

const module = "github.com/vxswitch/vxswitch/"

// given is what a piece of a program on a page has from elsewhere.
var given = map[string]string{
	"README.md":         "ctx context.Context, prefixes []netip.Prefix",
	"hostnet/README.md": "n *node.Node, failed func(error)",
	"metrics/README.md": "sw *vswitch.Switch, v *vtep.VTEP, u *underlay.UDP",
}

// imports is where the packages are whose path does not say their name, or that are not ours.
var imports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "netip": "net/netip", "os": "os", "slog": "log/slog", "time": "time",
	"prometheus": "github.com/prometheus/client_golang/prometheus",
	"promhttp":   "github.com/prometheus/client_golang/prometheus/promhttp",
	"vswitch":    module + "switch",
}

// section matches a configuration with a section of vxswitchd.
var section = regexp.MustCompile(`(?m)^  "(bgp|calico|discovery|evpn|flannel|ovsdb)": \{"`)

// Configurations are right, programs and pieces of them compile.
func TestCode(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			where := fmt.Sprintf("%s:%d", p.name, b.Line)
			switch b.Lang {
			case "json":
				if section.MatchString(b.Text) { // not node's: vxswitchd reads it, in TestSchemaSamples or where the page runs it
					continue
				}
				if _, err := node.Parse([]byte(b.Text)); err != nil {
					t.Errorf("%s: %v", where, err)
				}
			case "go":
				code := b.Text
				if !strings.HasPrefix(code, "package ") {
					var err error
					if code, err = whole(code, given[p.name]); err != nil {
						t.Errorf("%s: %v", where, err)
						continue
					}
				}
				n++
				file := filepath.Join(t.TempDir(), fmt.Sprintf("block%d.go", n))
				if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
					t.Fatal(err)
				}
				c := exec.Command("go", "vet", file)
				c.Dir = root
				for _, m := range []string{"metrics", "hostnet", "offload"} { // modules of their own
					if strings.HasPrefix(p.name, m+"/") || strings.Contains(code, module+m+"\"") {
						c.Dir = filepath.Join(root, m)
					}
				}
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s\n%s", where, err, out, code)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no page has Go in it")
	}
}

// whole makes a file of a piece of a program: a function of what is given, with the imports.
// The piece may begin with imports of its own.
func whole(piece, given string) (string, error) {
	head := "package p\n"
	for strings.HasPrefix(piece, "import ") {
		_, piece, _ = strings.Cut(piece, "\n")
	}
	body := "func _(" + given + ") (err error) {\n{\n" + strings.TrimSpace(piece) + "\nreturn err\n}\n}\n"
	f, err := parser.ParseFile(token.NewFileSet(), "", head+body, parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, body)
	}
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
		return true
	})
	for _, name := range names {
		path := imports[name]
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			path = module + name
		}
		if path != "" {
			head += fmt.Sprintf("import %s %q\n", name, path)
		}
	}
	return head + body, nil
}
