package selector

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The first half are rows of Calico's own tables of matches: libcalico-go/lib/selector/parser/parser_test.go.
func TestMatches(t *testing.T) {
	type l = Labels
	for _, c := range []struct {
		text   string
		labels l
		want   bool
	}{
		{`a == "b"`, l{"a": "b"}, true},
		{`a == "b"`, l{"a": "c"}, false},
		{`a == "b"`, l{}, false},
		{`a == 'b'`, l{"a": "b"}, true},
		{`a != "b"`, l{"a": "b"}, false},
		{`a != "b"`, l{"a": "c"}, true},
		{`a != "b"`, l{}, true},
		{`a in {"a"}`, l{"a": "a"}, true},
		{`a in {"a", "b"}`, l{"a": "b"}, true},
		{`a in {'a','b',}`, l{"a": "c"}, false},
		{`a in {"a"}`, l{"b": "a"}, false},
		{`a in {}`, l{"a": ""}, false},
		{`a not in {"d", "e", "f"}`, l{"a": "a"}, true},
		{`a not in {"a"}`, l{"a": "a"}, false},
		{`a notin {"a"}`, l{}, true},
		{`a  not  in {}`, l{"a": "a"}, true},
		{`a contains "b"`, l{"a": "ab"}, true},
		{`a contains "b"`, l{"a": "bac"}, true},
		{`a contains "b"`, l{"a": "cac"}, false},
		{`a contains "b"`, l{}, false},
		{`a contains ""`, l{"a": "x"}, true},
		{`a starts with "ab"`, l{"a": "abc"}, true},
		{`a starts with "ab"`, l{"a": "cab"}, false},
		{`a startswith "ab"`, l{}, false},
		{`a ends with "ab"`, l{"a": "cab"}, true},
		{`a ends with "ab"`, l{"a": "abc"}, false},
		{`a endswith "ab"`, l{}, false},
		{`has(a)`, l{"a": ""}, true},
		{`has(a)`, l{"b": "a"}, false},
		{`!has(a)`, l{}, true},
		{`!has(a)`, l{"a": "b"}, false},
		{`!!has(a)`, l{"a": "b"}, true},
		{`! ! !has( a )`, l{"a": "b"}, false},
		{`all()`, l{}, true},
		{`!all( )`, l{}, false},
		{`global()`, l{}, true},
		{``, l{}, true},
		{" \t", l{"a": "b"}, true},
		{`a == "b" && c == "d"`, l{"a": "b", "c": "d"}, true},
		{`a == "b" && c == "d"`, l{"a": "b"}, false},
		{`a == "b" || c == "d"`, l{"c": "d"}, true},
		{`a == "b" || c == "d"`, l{}, false},
		{`!a == "b" && has(c)`, l{"c": ""}, true}, // ! is about what is next
		{`has(a) || has(b) && has(c)`, l{"a": ""}, true},
		{`(has(a) || has(b)) && has(c)`, l{"a": ""}, false},
		{`has(a) && has(b) || has(c)`, l{"c": ""}, true},
		{`!(has(a) || has(b))`, l{"b": ""}, false},
		{`!((has(a)) && (has(b)))`, l{"b": ""}, true},
		{`projectcalico.org/name_x-1 == 'a "b"'`, l{"projectcalico.org/name_x-1": `a "b"`}, true},
		{`in in {'in'}`, l{"in": "in"}, true},
		{`has == 'x'`, l{"has": "x"}, true},
		{`a=='b'&&c=="d"||!has(e)`, l{}, true},
	} {
		s, err := Parse(c.text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := s.Matches(c.labels); got != c.want {
			t.Errorf("%s: labels %v: %v, want %v", c.text, c.labels, got, c.want)
		}
		again, err := Parse(s.String())
		if err != nil {
			t.Errorf("%s: written as %s: %v", c.text, s, err)
		} else if again.Matches(c.labels) != c.want {
			t.Errorf("%s: written as %s, which is something else", c.text, s)
		}
	}
}

func TestMatchesSeveral(t *testing.T) {
	s := check.Must(Parse(`a == "own" && has(b)`))(t)
	if !s.Matches(Labels{"a": "own"}, Labels{"a": "inherited", "b": ""}) {
		t.Error("labels of the second map do not count")
	}
	if s.Matches(Labels{"a": "inherited"}, Labels{"a": "own", "b": ""}) {
		t.Error("the second map counts before the first")
	}
}

func TestString(t *testing.T) {
	for text, want := range map[string]string{
		``:                               `all()`,
		`global( )`:                      `global()`,
		`a=='b'`:                         `a == "b"`,
		`a!='"'`:                         `a != '"'`,
		`a in {'c',"b",'c'}`:             `a in {"b", "c"}`,
		`a notin{}`:                      `a not in {}`,
		`((has(a))&&(has(b)&&has(c)))`:   `has(a) && has(b) && has(c)`,
		`!(!(has(a)))`:                   `has(a)`,
		`!(a == 'b')`:                    `!a == "b"`,
		`(has(a)||has(b))&&!(has(c))`:    `(has(a) || has(b)) && !has(c)`,
		`(has(a)&&has(b))||has(c)`:       `has(a) && has(b) || has(c)`,
		`!(has(a)&&has(b))`:              `!(has(a) && has(b))`,
		`a startswith 'x'||a endswith""`: `a starts with "x" || a ends with ""`,
	} {
		if s, err := Parse(text); err != nil {
			t.Error(err)
		} else if s.String() != want {
			t.Errorf("%s: %s, want %s", text, s, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		`a`:                        "must be one of ==, !=, in, not in, contains, starts with, ends with",
		`a = "b"`:                  "at byte 2: must be one of",
		`a == b`:                   "at byte 5: must be a value in quotes",
		`a == "b`:                  "the quote has no end",
		`a == "b'`:                 "the quote has no end",
		`a == "b" &&`:              "at byte 11: must be the name of a label",
		`a == "b" & c == "d"`:      "at byte 9: must end here",
		`a == "b" c`:               "must end here",
		`== "b"`:                   "must be the name of a label",
		`!`:                        "must be the name of a label",
		`has()`:                    "must be the name of a label",
		`has(a`:                    `must be ")"`,
		`has (a)`:                  "must be one of",
		`all(a)`:                   `must be ")"`,
		`global(`:                  `must be ")"`,
		`(has(a)`:                  `at byte 7: must be ")"`,
		`has(a))`:                  "must end here",
		`a in "b"`:                 `must be "{"`,
		`a in {"b"`:                `must be "}"`,
		`a in {b}`:                 `at byte 6: must be "}"`,
		`a in {,}`:                 `must be "}"`,
		`a not {"b"}`:              "must be one of",
		"has(a) &&\nhas(b)":        "must be the name of a label",
		`has(ü)`:                   "must be the name of a label",
		strings.Repeat("(", 1000):  "more than 64 parentheses",
		strings.Repeat("a", 600):   "must be at most 512",
		strings.Repeat(" ", 1<<17): "must be at most 65536",
	} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%.40s: is %v, want an error", text, s)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		} else if len(err.Error()) > 600 {
			t.Errorf("%.40s: an error of %d bytes", text, len(err.Error()))
		}
	}
	if _, err := Parse(strings.Repeat("(", MaxDepth) + "has(a)" + strings.Repeat(")", MaxDepth)); err != nil {
		t.Error(err)
	}
	if _, err := Parse(strings.Repeat("!", 60000) + "has(a)"); err != nil {
		t.Error(err)
	}
}
