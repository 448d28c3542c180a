// Settings writes docs/settings.md, the keys of a file of package node, and cmd/vxswitchd/schema.json, its JSON schema, from the
// comments of their fields. Run it with "go generate ./cmd/internal/file".
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/setting/conf"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: settings ROOT-OF-THE-REPOSITORY")
		os.Exit(2)
	}
	for name, of := range written {
		text, err := of(os.Args[1])
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], filepath.FromSlash(name)), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "settings:", err)
			os.Exit(1)
		}
	}
}

// written has the files, and what makes them.
var written = map[string]func(root string) ([]byte, error){"docs/settings.md": page, "cmd/vxswitchd/schema.json": schemaOf}

const head = `# Settings

<!-- Written by "go generate ./cmd/internal/file" from the comments of the Go source: change those. -->

All keys of a file of [vxswitchd](../cmd/vxswitchd/README.md), in their order. Package node reads the same but for the sections of
control planes at its end. Keys have defaults unless *needed*; the default of a bool is false. Segments refer to tunnels and ports by name, gateways
to VRFs.

| type | written |
|---|---|
| bool | ` + "`true`, `false`" + ` |
| duration | ` + "`\"300s\"`, `\"1m30s\"`, `\"500us\"`" + ` |
| IP | ` + "`\"10.0.0.1\"`, `\"2001:db8::1\"`, `\"fe80::1%eth0\"`" + ` |
| prefix | ` + "`\"10.0.0.0/8\"`, `\"2001:db8::/32\"`" + ` |
| MAC | ` + "`\"02:00:00:00:00:01\"`" + ` |
`

// A variant is one of several structs with settings of a type. A key applies to the variants with a field of its name.
type variant struct {
	word string
	t    reflect.Type
}

var variants = map[reflect.Type][]variant{
	reflect.TypeFor[node.Tunnel](): {
		{"udp", reflect.TypeFor[underlay.UDPConfig]()},
		{"packet", reflect.TypeFor[afpacket.Config]()},
		{"ipip", reflect.TypeFor[underlay.IPConfig]()},
	},
	reflect.TypeFor[node.Port](): {
		{"tap, tun, veth, interface", reflect.TypeFor[port.DeviceConfig]()},
		{"packet", reflect.TypeFor[port.PacketConfig]()},
	},
}

// A writer makes the page.
type writer struct {
	*source
	order []reflect.Type
	paths map[reflect.Type][]string       // where objects of a type are in the file
	in    map[reflect.Type][]reflect.Type // what they are in
}

func newWriter(root string) *writer {
	w := &writer{source: newSource(root), paths: map[reflect.Type][]string{}, in: map[reflect.Type][]reflect.Type{}}
	w.find(reflect.TypeFor[file.Config](), "")
	return w
}

// page returns the page, of the repository at root.
func page(root string) ([]byte, error) {
	w := newWriter(root)
	var b strings.Builder
	b.WriteString(head)
	for i, t := range w.order {
		if i == 0 {
			b.WriteString("\n## The file\n\n")
		} else {
			fmt.Fprintf(&b, "\n## %s\n\n", w.title(t))
			if doc := w.typeDoc(t); doc != "" {
				fmt.Fprintf(&b, "%s\n\n", doc)
			}
		}
		if in := w.in[t]; len(w.paths[t]) > 1 {
			var links []string
			for _, p := range in {
				links = append(links, fmt.Sprintf("[%s](%s)", w.title(p), w.anchor(p)))
			}
			fmt.Fprintf(&b, "It is in %s.\n\n", strings.Join(links, ", "))
		}
		b.WriteString("| key | type | |\n|---|---|---|\n")
		for _, f := range conf.Fields(t) {
			about := w.about(t, f.StructField)
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Key, w.kindOf(f.StructField, about), about)
		}
	}
	return []byte(b.String()), w.err
}

// find notes the objects below one, and where they are.
func (w *writer) find(t reflect.Type, path string) {
	if w.paths[t] == nil {
		w.order = append(w.order, t)
	}
	w.paths[t] = append(w.paths[t], path)
	for _, f := range conf.Fields(t) {
		below, x := conf.Join(path, f.Key), f.Type
		for ; x.Kind() == reflect.Slice || x.Kind() == reflect.Pointer; x = x.Elem() {
			if x.Kind() == reflect.Slice {
				below += "[]"
			}
		}
		w.name(x)
		if isObject(x) {
			if !slices.Contains(w.in[x], t) {
				w.in[x] = append(w.in[x], t)
			}
			w.find(x, below)
		}
	}
}

// title returns the heading of an object: its place, or where it has several its name, and where it is if another has that too.
func (w *writer) title(t reflect.Type) string {
	switch at := w.paths[t]; {
	case at[0] == "":
		return "The file"
	case len(at) > 1:
		if slices.ContainsFunc(w.order, func(x reflect.Type) bool { return x != t && x.Name() == t.Name() && len(w.paths[x]) > 1 }) {
			return t.Name() + " of " + at[0][:strings.IndexAny(at[0], ".[")]
		}
		if t.Name() == "Config" { // of a package that does one thing
			key := at[0][strings.LastIndex(at[0], ".")+1:]
			return strings.ToUpper(key[:1]) + key[1:]
		}
		return t.Name()
	default:
		return "`" + at[0] + "`"
	}
}

// anchor returns what links to a heading end in.
func (w *writer) anchor(t reflect.Type) string {
	return "#" + strings.NewReplacer("`", "", ".", "", "[]", "", " ", "-").Replace(strings.ToLower(w.title(t)))
}

// about returns what the comments of a field of an object say.
func (w *writer) about(t reflect.Type, f reflect.StructField) string {
	owner, text, where, all := t, "", t, variants[t]
	for i := range f.Index[1:] { // embedded
		e := t.FieldByIndex(f.Index[:i+1])
		if text == "" {
			text, where = instead(w.doc(owner, e), f.Name), owner
		}
		owner = e.Type
	}
	if text == "" {
		text, where = w.doc(owner, f), owner
	}
	var has, others []string // variants; what differs in some
	for _, v := range all {
		x, ok := v.t.FieldByName(f.Name)
		if !ok || x.Type != f.Type {
			continue
		}
		switch more := w.doc(v.t, x); {
		case text == "":
			text, where = more, v.t
			fallthrough
		case where == t || where == v.t || more == text || strings.Contains(more, "["+where.Name()+"]"):
			has = append(has, v.word)
		default:
			others = append(others, fmt.Sprintf("<br>*%s:* %s", v.word, sentence(w.prose(more, f.Name, v.t))))
		}
	}
	if text == "" {
		w.fail("%v.%s has no comment", owner, f.Name)
	}
	text = sentence(w.prose(text, f.Name, where))
	switch {
	case len(others) > 0:
		text = fmt.Sprintf("*%s:* %s", strings.Join(has, ", "), text)
	case len(has) > 0 && len(has) < len(all):
		text = fmt.Sprintf("*%s only:* %s", strings.Join(has, ", "), text)
	}
	if f.Tag.Get("zero") == "never" {
		text = strings.ReplaceAll(text, "negative = ", "`\"0s\"` = ")
	}
	return text + strings.Join(others, "") + w.words(t, f)
}

// instead returns what the comment of an embedded struct says of one of its fields, as in
// "Name: text; Type: text".
func instead(comment, field string) string {
	_, text, ok := strings.Cut("; "+comment, "; "+field+": ")
	if end := next.FindStringIndex(text); ok && end != nil {
		text = text[:end[0]]
	}
	return text
}

var next = regexp.MustCompile(`; [A-Z]\w*: `)

// words returns what the words of an enum mean, a line each. Towards single peers the first is
// what the tunnel has.
func (w *writer) words(in reflect.Type, f reflect.StructField) (text string) {
	t := f.Type
	for _, c := range wordsOf(t) {
		name := w.constant(t, c.value)
		doc := w.of(t)[name]
		if doc == "" {
			continue
		}
		text += "<br>`\"" + c.text + "\"`"
		if c.value == 0 && strings.Contains(f.Tag.Get("json"), ",omit") {
			text += ", the default"
		}
		if c.value == 0 && in == reflect.TypeFor[node.PeerSetting]() {
			doc = "as the tunnel has it"
		}
		text += ": " + w.prose(doc, name, t)
	}
	return text
}
