// Drops writes docs/drops.md, the reasons why frames are dropped, from the comments of package frame and the advice
// here. Run it with "go generate ./frame".
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: drops ROOT-OF-THE-REPOSITORY")
		os.Exit(2)
	}
	text, err := page(os.Args[1])
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Args[1], "docs", "drops.md"), text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "drops:", err)
		os.Exit(1)
	}
}

const head = `# Drop reasons

<!-- Written by "go generate ./frame" from frame/reason.go and internal/drops/advice.go: change those. -->

Every frame is delivered or counted under one of these reasons. ` + "`vxsctl drops`" + ` shows the counters: *rx* is where the frame came in,
*tx* where it was to go out. ` + "`vxsctl trace`" + ` shows single frames with their reason. [Troubleshooting](troubleshooting.md) says how
to find one of them. ` + "`too-big-answered`" + ` is none: it counts frames that were too big and whose sender got an ICMP error.

| reason | the frame | what to do |
|---|---|---|
`

// page returns the page, of the repository at root.
func page(root string) ([]byte, error) {
	meaning, err := comments(filepath.Join(root, "frame", "reason.go"))
	if err != nil {
		return nil, err
	}
	b := bytes.NewBufferString(head)
	for r := frame.NotDropped + 1; r < frame.NumReasons; r++ {
		if meaning[r] == "" || advice[r] == "" {
			return nil, fmt.Errorf("%v: no comment in package frame, or no advice", r)
		}
		fmt.Fprintf(b, "| `%v` | %s | %s |\n", r, cell(meaning[r]), cell(advice[r]))
	}
	return b.Bytes(), nil
}

// comments returns the comments of the constants in a file, by their order.
func comments(file string) (texts [frame.NumReasons]string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return texts, err
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			for i, s := range g.Specs {
				if i < len(texts) {
					texts[i] = strings.TrimSpace(s.(*ast.ValueSpec).Comment.Text())
				}
			}
		}
	}
	return texts, nil
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
