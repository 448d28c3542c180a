package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// The files are what the source says.
func TestWritten(t *testing.T) {
	for name, of := range written {
		want := check.Must(of("../../.."))(t)
		got := check.Must(os.ReadFile("../../../" + name))(t)
		if !bytes.Equal(got, want) {
			a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
			i := 0
			for i < len(a)-1 && i < len(b)-1 && a[i] == b[i] {
				i++
			}
			t.Errorf("%s:%d: run go generate ./cmd/internal/file\n have %s\n want %s", name, i+1, a[i], b[i])
		}
	}
}

var goWord = regexp.MustCompile(`[^\n]\b[A-Z]+[a-z]*Config\b|DefaultStorm|Switch\.`)

// What a reader of the page, who has no Go, would trip over.
func TestWords(t *testing.T) {
	text := check.Must(page("../../.."))(t)
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, "ttl` | number") && strings.Contains(line, "none"):
			t.Errorf("a TTL cannot be none: %s", line)
		case strings.Contains(line, "| duration |") && strings.Contains(line, " 0 "):
			t.Errorf("a duration has a unit: %s", line)
		case strings.Contains(line, "zero value") || goWord.MatchString(line):
			t.Errorf("words of Go: %s", line)
		}
	}
	_, settings, _ := strings.Cut(string(text), "## `tunnels[].peerSettings[]`")
	settings, _, _ = strings.Cut(settings, "\n## ")
	if n := strings.Count(settings, "as the tunnel has it"); n != 6 {
		t.Errorf("%d settings of peers are as the tunnel has them, 5 and the whole:\n%s", n, settings)
	}
}

// What the page has as examples of a type is read.
func TestExamples(t *testing.T) {
	code := regexp.MustCompile("`([^`]+)`")
	n := 0
	for x, form := range forms {
		text := form.text
		if text == "duration" || !strings.Contains(text, "`") {
			continue
		}
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			value := m[1]
			if strings.HasPrefix(text, "list of ") {
				value = "[" + value + "]"
			}
			if err := json.Unmarshal([]byte(value), reflect.New(x).Interface()); err != nil {
				t.Errorf("%v: %v", x, err)
			}
			n++
		}
	}
	for x, form := range forms {
		text := form.text
		if text == "duration" || strings.Contains(text, "`") {
			continue
		}
		_, row, ok := strings.Cut(head, "| "+text+" | ")
		row, _, _ = strings.Cut(row, "\n")
		if !ok {
			t.Errorf("%v: %s is not explained", x, text)
		}
		for _, m := range code.FindAllStringSubmatch(row, -1) {
			if err := json.Unmarshal([]byte(m[1]), reflect.New(x).Interface()); err != nil {
				t.Errorf("%v: %v", x, err)
			}
			n++
		}
	}
	if n < 10 {
		t.Errorf("%d examples", n)
	}
}

// A key that nothing is said of is an error, and so is a source that is not there.
func TestNoComment(t *testing.T) {
	w := &writer{source: newSource("../../..")}
	type bare struct {
		Queues int `json:"queues"`
	}
	w.docs[reflect.TypeFor[bare]().PkgPath()] = map[string]string{}
	f := reflect.TypeFor[bare]().Field(0)
	if w.about(reflect.TypeFor[bare](), f); w.err == nil {
		t.Error("no error")
	}
	if _, err := page(t.TempDir()); err == nil {
		t.Error("no error without a source")
	}
}

// Names of Go become keys and words; what is for Go alone is left out.
func TestProse(t *testing.T) {
	s := newSource("../../..")
	x := reflect.TypeFor[node.Port]()
	s.name(reflect.TypeFor[node.PortType]())
	for _, c := range [][3]string{
		{"RecvBuffer", "RecvBuffer is the size (node.Parse), with\nPromiscuous too.", "the size, with `promiscuous` too"},
		{"Name", "Name has to be said; MAC is none; default PortTAP", "has to be said; MAC is none; default `tap`"},
		{"", "dropped under [frame.TooBig] | [Unknown]", "dropped under `too-big` \\| Unknown"},
	} {
		if got := s.prose(c[1], c[0], x); got != c[2] {
			t.Errorf("%q", got)
		}
	}
}
