package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting/conf"
)

const module = "github.com/vxswitch/vxswitch/"

// A source is the comments of the packages, which are read when they are asked for.
type source struct {
	root string
	docs map[string]map[string]string // by package: of Type, Type.Field and Constant
	enum map[string][]string          // the constants of a type, by package.Type
	text map[string]string            // what is written for a constant, by package.Constant
	err  error
}

func newSource(root string) *source {
	s := &source{root: root, docs: map[string]map[string]string{}, enum: map[string][]string{}}
	s.text = map[string]string{
		module + "vtep.Inherit": `"inherit"`, module + "vtep.TOSZero": `"none"`, module + "vtep.FromPriority": `"priority"`,
		module + "vtep.ReservedRFC": `"rfc"`, module + "vtep.ReservedStrict": `"strict"`,
	}
	s.name(reflect.TypeFor[frame.Reason]())
	return s
}

func (s *source) fail(format string, args ...any) {
	s.err = errors.Join(s.err, fmt.Errorf(format, args...))
}

// of returns the comments of a type's package.
func (s *source) of(t reflect.Type) map[string]string {
	pkg := t.PkgPath()
	folder, ours := strings.CutPrefix(pkg, module)
	if s.docs[pkg] != nil || !ours {
		return s.docs[pkg]
	}
	s.docs[pkg] = map[string]string{}
	files, _ := filepath.Glob(filepath.Join(s.root, folder, "*.go"))
	if len(files) == 0 {
		s.fail("no source of %s in %s", pkg, s.root)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			s.fail("%v", err)
			continue
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				s.read(pkg, g)
			}
		}
	}
	return s.docs[pkg]
}

// read takes the comments of one declaration.
func (s *source) read(pkg string, g *ast.GenDecl) {
	docs, of := s.docs[pkg], ""
	for _, spec := range g.Specs {
		switch x := spec.(type) {
		case *ast.TypeSpec:
			docs[x.Name.Name] = commentOf(x.Doc, g.Doc)
			if st, ok := x.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, name := range names(f) {
						docs[x.Name.Name+"."+name] = commentOf(f.Doc, f.Comment)
					}
				}
			}
		case *ast.ValueSpec:
			if id, ok := x.Type.(*ast.Ident); ok {
				of = id.Name
			}
			if g.Tok == token.CONST && of != "" {
				s.enum[pkg+"."+of] = append(s.enum[pkg+"."+of], x.Names[0].Name)
				docs[x.Names[0].Name] = commentOf(x.Doc, x.Comment)
			}
		}
	}
}

// names returns those of a field, of an embedded one that of its type.
func names(f *ast.Field) (list []string) {
	for _, id := range f.Names {
		list = append(list, id.Name)
	}
	if list != nil {
		return list
	}
	switch x := f.Type.(type) {
	case *ast.SelectorExpr:
		list = append(list, x.Sel.Name)
	case *ast.Ident:
		list = append(list, x.Name)
	}
	return list
}

// commentOf returns the first comment there is.
func commentOf(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g != nil {
			return strings.TrimSpace(g.Text())
		}
	}
	return ""
}

// name notes what is written for the constants of an enum.
func (s *source) name(t reflect.Type) {
	if s.of(t) == nil {
		return
	}
	for _, c := range wordsOf(t) {
		s.text[t.PkgPath()+"."+s.constant(t, c.value)] = c.text
	}
}

// constant returns the name of one of an enum.
func (s *source) constant(t reflect.Type, value int) string {
	s.of(t)
	if list := s.enum[t.PkgPath()+"."+t.Name()]; value < len(list) {
		return list[value]
	}
	return ""
}

func (s *source) doc(t reflect.Type, f reflect.StructField) string {
	return s.of(t)[t.Name()+"."+f.Name]
}

// typeDoc returns what the comment of a type says, in paragraphs.
func (s *source) typeDoc(t reflect.Type) string {
	var list []string
	for part := range strings.SplitSeq(s.of(t)[t.Name()], "\n\n") {
		if part = forGo.ReplaceAllString(strings.Join(strings.Fields(part), " "), ""); part == "" {
			continue
		}
		list = append(list, sentence(s.prose(part, "", t)))
	}
	return strings.Join(list, "\n\n")
}

var (
	link  = regexp.MustCompile(`\[([A-Za-z][\w.]*[a-z][\w.]*)\]`) // with a small letter: [PORT] is a part that may be left out
	ident = regexp.MustCompile(`\b(?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Z]\w*)*`)
	forGo = regexp.MustCompile(`^\w+ (?:holds the settings of|configures) \S+ ?\S+\. ?|The zero value (?:works|is ready to use)\. ?`)
	only  = regexp.MustCompile(` \((?:\w+\.[A-Z][^()]*|[A-Z]\w*[a-z]\w*)\)`) // for Go alone
)

// prose returns a comment as a page has it: one that is about a field or constant, in a type
// that is where. Fields and constants are called by their keys and words.
func (s *source) prose(text, about string, where reflect.Type) string {
	text = link.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
	if rest, ok := strings.CutPrefix(text, about+" "); ok && about != "" {
		verb := strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
		if verb != rest || mixed(about) {
			text = verb
		}
	}
	text = ident.ReplaceAllStringFunc(text, func(name string) string {
		pkg, in := where.PkgPath(), name
		if i := strings.IndexByte(name, '.'); i >= 0 && unicode.IsLower(rune(name[0])) {
			pkg, in = module+name[:i], name[i+1:]
			if path.Base(pkg) == "vswitch" {
				pkg = module + "switch"
			}
		}
		if word := s.text[pkg+"."+in]; word != "" {
			return "`" + word + "`"
		}
		if word := s.key(where, name); word != "" {
			return "`" + word + "`"
		}
		return name
	})
	return strings.TrimSuffix(strings.ReplaceAll(only.ReplaceAllString(text, ""), "|", `\|`), ".")
}

// sentence makes one of prose.
func sentence(text string) string {
	if r, n := utf8.DecodeRuneInString(text); n > 0 {
		text = string(unicode.ToUpper(r)) + text[n:] + "."
	}
	return text
}

// key returns that of a field of a type. MAC, TTL and the like are words of everybody.
func (s *source) key(t reflect.Type, name string) string {
	if t.Kind() != reflect.Struct || !mixed(name) {
		return ""
	}
	return conf.Key(t, name)
}

// mixed reports whether a name has small letters, other than the s of a plural.
func mixed(name string) bool {
	return strings.ContainsFunc(strings.TrimSuffix(name, "s"), unicode.IsLower)
}
