package worst

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

const root = "../../.."

// folders is where tables may be: what runs between a wire and a host, and its control socket.
var folders = []string{
	"frame", "bfd", "bfd/vxlan", "encap", "fdb", "arp", "l3", "policy", "snoop", "switch", "vtep", "underlay", "underlay/afpacket", "underlay/memory", "port", "port/porttest", "capture", "internal/datagrams", "internal/delay", "internal/filter",
	"bgp", "calico", "calico/internal/model", "calico/internal/resource", "calico/internal/rules", "calico/internal/selector", "control", "node", "evpn", "evpn/internal/bgp", "evpn/internal/unnumbered", "evpn/internal/table", "flannel", "setting/conf", "cmd/vxswitchd", "offload", "offload/internal/datapath", "internal/gso", "internal/icmperr", "internal/index", "internal/pending", "internal/perworker", "internal/ring", "internal/mix", "internal/neighbour", "internal/shares",
	"ovsdb/internal/server", "ovsdb/internal/store",
}

// TestFields checks that every container in a struct is known: as a part of a row, or as one that no
// stranger fills.
func TestFields(t *testing.T) {
	known := map[string]string{}
	add := func(list, as string) {
		for _, f := range strings.Fields(list) {
			if was, twice := known[f]; twice {
				t.Errorf("%s is listed twice: %s, %s", f, was, as)
			}
			known[f] = as
		}
	}
	for _, r := range Rows {
		add(r.Holds, r.Name)
	}
	add(configured, "configured")
	add(fixed, "fixed")
	found := map[string]bool{}
	for _, f := range containers(t) {
		found[f] = true
		if known[f] == "" {
			t.Errorf("%s may grow: say in rows.go which table it belongs to, or in fields_test.go why no stranger fills it", f)
		}
	}
	for f, as := range known {
		if !found[f] {
			t.Errorf("%s (%s) is not in the source", f, as)
		}
	}
}

// containers returns the fields of structs that hold any number of things. Exported fields of
// exported structs are settings and reports, not tables.
func containers(t *testing.T) (fields []string) {
	for _, folder := range folders {
		files := parse(t, folder, false)
		named := lists(files)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				s, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true
				}
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						public := name.IsExported() && spec.Name.IsExported()
						if !public && name.Name != "_" && holdsMany(field.Type, named) {
							fields = append(fields, folder+"."+spec.Name.Name+"."+name.Name)
						}
					}
				}
				return true
			})
		}
	}
	if len(fields) < 100 {
		t.Fatalf("%d containers found: the search does not work", len(fields))
	}
	slices.Sort(fields)
	return slices.Compact(fields) // one for each system
}

// lists returns the types of a package that are containers and no structs.
func lists(files []*ast.File) map[string]bool {
	named := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if x, ok := spec.(*ast.TypeSpec); ok {
					if _, ok := x.Type.(*ast.StructType); !ok && holdsMany(x.Type, nil) {
						named[x.Name.Name] = true
					}
				}
			}
		}
	}
	return named
}

// holdsMany reports whether a type is, or holds by name, a map, a channel, a slice but of bytes, an
// array of more than 64 or of a named number, one of our own containers, or a type that is one.
func holdsMany(e ast.Expr, named map[string]bool) (many bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType, *ast.InterfaceType:
			return false
		case *ast.Ident:
			many = many || named[n.Name]
		case *ast.MapType, *ast.ChanType:
			many = true
		case *ast.ArrayType:
			if elem, ok := n.Elt.(*ast.Ident); ok && elem.Name == "byte" {
				return true
			}
			size, ok := n.Len.(*ast.BasicLit)
			if !ok {
				many = true
				return true
			}
			if v, err := strconv.Atoi(size.Value); err != nil || v > 64 {
				many = true
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains([]string{"index.Map", "ring.Ring", "pending.Set", "delay.Queue", "sync.Map", "list.List"}, x.Name+"."+n.Sel.Name) {
				many = true
			}
		}
		return true
	})
	return many
}

// parse returns the files of a folder, of all systems: the tests, or all others.
func parse(t *testing.T, folder string, tests bool) (files []*ast.File) {
	names := check.Must(filepath.Glob(filepath.Join(root, folder, "*.go")))(t)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		f := check.Must(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		files = append(files, f)
	}
	return files
}

// TestRows checks that the test of each row is there and reports for it.
func TestRows(t *testing.T) {
	for _, r := range Rows {
		folder, name, ok := cutLast(r.Test, ".")
		if !ok || !strings.HasPrefix(name, "TestWorst") {
			t.Errorf("%s: test %q, must be folder.TestWorst...", r.Name, r.Test)
			continue
		}
		if !reports(t, folder, name, r.Name) {
			t.Errorf("%s: %s calls no worst.Kept(t, %q, ...)", r.Name, r.Test, r.Name)
		}
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// reports looks for a test of a folder that calls Kept with the name of a row.
func reports(t *testing.T, folder, test, row string) (yes bool) {
	for _, f := range parse(t, folder, true) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != test {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Kept" || len(call.Args) != 4 {
					return true
				}
				if lit, ok := call.Args[1].(*ast.BasicLit); ok && lit.Value == strconv.Quote(row) {
					yes = true
				}
				return true
			})
		}
	}
	return yes
}

// TestDocumentation checks that SECURITY.md has the list.
func TestDocumentation(t *testing.T) {
	text := check.Must(os.ReadFile(filepath.Join(root, "SECURITY.md")))(t)
	var want strings.Builder
	want.WriteString("| table | limit | share | removed or dropped when full | kept under attack |\n|---|---|---|---|---|\n")
	for _, r := range Rows {
		want.WriteString("| " + r.Name + " | " + r.Limit + " | " + r.Share + " | " + r.Full + " | " + strconv.Itoa(r.Kept) + "% |\n")
	}
	if !strings.Contains(string(text), want.String()) {
		t.Errorf("SECURITY.md and rows.go differ; want:\n%s", want.String())
	}
}
