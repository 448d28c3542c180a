// Command portable checks that packages are right for other systems: go run ./portable -C .. windows/amd64,linux/386 ./... It checks the
// types of each package and of its tests with its source alone, which takes a tenth of the time of compiling all of it once more.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("C", ".", "folder with the packages, or with others below it")
	flag.Parse()
	if flag.NArg() < 2 {
		log.Fatal("usage: portable [-C folder] system/architecture,... package ...")
	}
	root, err := filepath.Abs(*dir)
	if err != nil {
		log.Fatal(err)
	}
	wrong := 0
	for system := range strings.SplitSeq(flag.Arg(0), ",") {
		n, err := check(os.Stderr, root, system, flag.Args()[1:])
		if err != nil {
			log.Fatalf("%s: %v", system, err)
		}
		wrong += n
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

// check reports what is wrong with the packages of root on a system, such as windows/amd64, and how much.
func check(w io.Writer, root, system string, patterns []string) (wrong int, err error) {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return 0, fmt.Errorf("not system/architecture, such as windows/amd64")
	}
	list, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes,
		Dir: root, Tests: true,
		Env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
			return parse(fset, root, name, text)
		},
	}, patterns...)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, fmt.Errorf("no packages: %q", patterns)
	}
	seen := map[string]bool{} // a package with its tests has its errors again
	for _, p := range list {
		if strings.HasSuffix(p.ID, ".test") { // the main package that go test makes
			continue
		}
		for _, e := range p.Errors {
			if text := e.Error(); !seen[text] {
				seen[text] = true
				fmt.Fprintf(w, "%s: %s\n", system, text)
			}
		}
	}
	return len(seen), nil
}

// parse parses a file. Those of others, outside root, count with what they declare.
func parse(fset *token.FileSet, root, name string, text []byte) (*ast.File, error) {
	f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if rel, e := filepath.Rel(root, name); f != nil && (e != nil || !filepath.IsLocal(rel)) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				fn.Body = nil
			}
		}
	}
	return f, err
}
