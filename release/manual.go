package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// manuals returns the man pages: of the programs, from what they print for -h, and of the configuration file, from its schema.
func manuals(source string) (map[string][]byte, error) {
	pages := map[string][]byte{}
	for name, about := range map[string]string{
		"vxswitchd": "virtual switch and VXLAN tunnel end point", "vxsctl": "show and change a running vxswitchd",
		"vxflanneld": "node of a flannel network, in the place of flanneld", "vxswitch-cni": "CNI plugin for segments of vxswitchd",
	} {
		c := goCommand(runtime.GOARCH, "run", "-C", filepath.Join(source, "cmd"), "./"+name, "-h")
		c.Stderr = os.Stderr
		help, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("%s -h: %w", name, err)
		}
		pages[name+".8"] = helpPage(name, about, string(help))
	}
	text, err := os.ReadFile(filepath.Join(source, "cmd/vxswitchd/schema.json"))
	if err != nil {
		return nil, err
	}
	pages["vxswitchd.json.5"], err = schemaPage(text)
	return pages, err
}

// A roff is a page in the language of man.
type roff struct{ strings.Builder }

func newRoff(name, section, about string) *roff {
	r := new(roff)
	fmt.Fprintf(r, ".TH %s %s \"\" vxswitch\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), section, name, escape(about))
	return r
}

// escape writes text as itself.
func escape(s string) string { return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s) }

// macro writes a macro with one argument.
func (r *roff) macro(name, text string) {
	fmt.Fprintf(r, ".%s \"%s\"\n", name, strings.ReplaceAll(escape(text), `"`, `\(dq`))
}

// line writes a line of text.
func (r *roff) line(text string) {
	if text = escape(text); strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	fmt.Fprintln(r, text)
}

// item writes a term and what it is.
func (r *roff) item(term string) {
	r.WriteString(".TP\n")
	r.macro("B", term)
}

var (
	heading = regexp.MustCompile(`^([A-Z][^:]*):(?: (.+))?$`)
	indent  = regexp.MustCompile(`^ {6,}(\S.*)$`)
	entry   = regexp.MustCompile(`^  (\S.*?)(?: {2,}(\S.*))?$`)
)

// helpPage returns the page of a program. In its help, a section begins with a line that ends in a colon; terms are indented by
// two spaces, and what they are follows after two spaces or more, or on lines that are indented by six spaces or more.
func helpPage(name, about, help string) []byte {
	r := newRoff(name, "8", about)
	section := ""
	lines := strings.Split(strings.TrimSpace(help), "\n")
	for i, line := range lines {
		h, deep, e := heading.FindStringSubmatch(line), indent.FindStringSubmatch(line), entry.FindStringSubmatch(line)
		below := i+1 < len(lines) && indent.MatchString(lines[i+1])
		switch {
		case line == "":
			r.WriteString(".PP\n")
		case h != nil && h[1] == "Usage":
			r.WriteString(".SH SYNOPSIS\n")
			r.line(h[2])
			r.WriteString(".SH DESCRIPTION\n")
		case h != nil:
			section = h[1]
			if r.macro("SH", section); h[2] != "" {
				r.line(h[2])
			}
		case section == "Examples":
			r.WriteString(".PP\n.EX\n")
			r.line(strings.TrimSpace(line))
			r.WriteString(".EE\n")
		case deep != nil:
			r.line(deep[1])
		case e != nil && (e[2] != "" || below):
			if r.item(e[1]); e[2] != "" {
				r.line(e[2])
			}
		default:
			if i > 0 && (indent.MatchString(lines[i-1]) || entry.MatchString(lines[i-1]) && entry.FindStringSubmatch(lines[i-1])[2] != "") {
				r.WriteString(".PP\n") // after a list
			}
			r.line(strings.TrimSpace(line))
		}
	}
	other := "vxswitchd"
	if name == other {
		other = "vxsctl"
	}
	fmt.Fprintf(r, ".SH SEE ALSO\n.BR %s (8),\n.BR vxswitchd.json (5)\n", other)
	return []byte(r.String())
}

// A schema is what a page needs of a JSON schema.
type schema struct {
	Title, Description, Type string
	Ref                      string `json:"$ref"`
	Properties               map[string]*schema
	Enum                     []string
	Items                    *schema
	AnyOf                    []*schema
	Names                    json.RawMessage    `json:"additionalProperties"` // what an object with names has, or false
	Defs                     map[string]*schema `json:"$defs"`
}

// schemaPage returns the page of the configuration file.
func schemaPage(text []byte) ([]byte, error) {
	var file schema
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	r := newRoff("vxswitchd.json", "5", "configuration of vxswitchd")
	r.WriteString(".SH DESCRIPTION\n")
	r.line("The file is JSON, with // and /* */ comments and trailing commas. Keys have defaults unless needed; the default of a boolean is false.")
	r.line(`Durations are written "300s", addresses "10.0.0.1", prefixes "10.0.0.0/8", and MACs "02:00:00:00:00:01".`)
	list := []*schema{&file}
	for _, d := range file.Defs {
		list = append(list, d)
	}
	slices.SortFunc(list[1:], func(a, b *schema) int { return strings.Compare(a.Title, b.Title) })
	for i, s := range list {
		if i > 0 {
			r.macro("SH", s.Title)
		}
		keys := make([]string, 0, len(s.Properties))
		for k := range s.Properties {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			p := s.Properties[k]
			r.item(fmt.Sprintf("%s: %s", k, p.kind(file.Defs)))
			for j, text := range strings.Split(p.Description, "\n") {
				if j > 0 {
					r.WriteString(".br\n")
				}
				r.line(text)
			}
		}
	}
	r.WriteString(".SH SEE ALSO\n.BR vxswitchd (8),\n.BR vxsctl (8)\n")
	return []byte(r.String()), nil
}

// kind says how a value is written.
func (s *schema) kind(defs map[string]*schema) string {
	switch {
	case s.Ref != "":
		return "object, see " + defs[strings.TrimPrefix(s.Ref, "#/$defs/")].Title
	case len(s.Enum) > 0:
		return `"` + strings.Join(s.Enum, `", "`) + `"`
	case len(s.AnyOf) > 0:
		var kinds []string
		for _, x := range s.AnyOf {
			kinds = append(kinds, x.kind(defs))
		}
		return strings.Join(kinds, ", ")
	case s.Items != nil:
		return "list of " + strings.Replace(s.Items.kind(defs), "object,", "objects,", 1)
	case s.Type == "object":
		var of schema
		json.Unmarshal(s.Names, &of)
		return "names, each with a " + of.kind(defs)
	}
	return map[string]string{"integer": "number"}[s.Type] + map[string]string{"string": "text", "boolean": "boolean"}[s.Type]
}
