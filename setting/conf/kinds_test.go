package conf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
)

type word string

type Inner struct {
	Depth int16 `json:"depth,omitzero"`
	Same  int   `json:"same,omitzero"`
}

type Tagged struct {
	In string `json:"in,omitzero"`
}

// kinds has one setting of each kind.
type kinds struct {
	Inner
	common
	Tagged `json:"tagged,omitzero"`

	Outer  int               `json:"same,omitzero"` // stands for Inner.Same
	Word   word              `json:"word,omitzero"`
	Nested **int             `json:"nested,omitzero"`
	Bare   *int              `json:"bare"` // left out where it is nil, without omitzero
	List   []string          `json:"list"`
	Raw    json.RawMessage   `json:"raw"`
	Big    big.Int           `json:"big,omitzero"` // whose methods are those of the pointer
	Words  map[word]*Inner   `json:"words,omitempty"`
	Far    map[string]common `json:"far,omitempty"`
	Never  time.Duration     `json:"never" zero:"never"`
	Nevers []time.Duration   `json:"nevers,omitempty" zero:"never"`
	VNI    *frame.VNI        `json:"vni,omitzero"`
	Bytes  []byte            `json:"bytes,omitempty"`
	Any    any               `json:"any,omitempty"`
	Func   func()            `json:"func,omitzero"`
	Ints   map[int]int       `json:"ints,omitempty"`
	Float  float64           `json:"float,omitzero"`
}

const kindsText = `{"depth": -1, "same": 3, "word": "a<b&c>\u2028", "nested": 7, "bare": 0, "list": [],
	"raw": {"a": [1, 2,], /* no more */}, "big": 123456789012345678901234567890, "words": {"": {}, "10.0/8": {"depth": 2}},
	"far": {"fe80::1%eth0": {"ageing": "0s"}, "10.0.0.1": {"wait": "1h0m0.000000001s"}}, "never": "0s", "nevers": ["0s", "1s"],
	"vni": 0, "bytes": [0, 255], "tagged": {"in": "x"}} // no newline here`

func TestKinds(t *testing.T) {
	var k kinds
	r, err := conf.Read([]byte(kindsText), &k, nil)
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	if k.Depth != -1 || k.Same != 0 || k.Outer != 3 || **k.Nested != 7 || k.Never >= 0 || k.Nevers[0] >= 0 ||
		k.Words["10.0/8"].Depth != 2 || k.Far["10.0.0.1"].Wait != time.Hour+1 || *k.VNI != 0 || k.In != "x" || k.List == nil {
		t.Errorf("%+v", k)
	}
	again(t, k)
	again(t, kinds{})
	again(t, kinds{Raw: json.RawMessage(`"x"`)})
}

// A field that is not exported is not a setting, whatever its tag.
func TestPrivate(t *testing.T) {
	x := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "x", PkgPath: "test", Type: reflect.TypeFor[int](), Tag: `json:"x"`}}))
	r, err := conf.Read([]byte(`{"x": 1}`), x.Interface(), nil)
	if err != nil || r.Err() == nil {
		t.Error(err)
	}
	if text, err := conf.Write(x.Interface()); err != nil || string(text) != "{}" {
		t.Errorf("%s, %v", text, err)
	}
}

// again writes and reads a struct: it is the same.
func again(t *testing.T, k kinds) {
	t.Helper()
	text := check.Must(conf.Write(k))(t)
	var back kinds
	r, err := conf.Read(text, &back, nil)
	if err != nil || r.Err() != nil {
		t.Fatalf("%s: %v, %v", text, err, r.Err())
	}
	if !reflect.DeepEqual(back, k) {
		t.Fatalf("%s:\n%+v\n%+v", text, back, k)
	}
}

func TestKindsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"float": 1}`:                          `1:11: float: a file cannot set a float64`,
		`{"any": {"a": 1}}`:                     `1:9: any: a file cannot set a interface {}`,
		`{"func": 0}`:                           `1:10: func: a file cannot set a func()`,
		`{"ints": {"1": 2}}`:                    `1:10: ints: a file cannot set a map[int]int`,
		`{"in": "x"}`:                           `1:2: in: unknown key; allowed are `,
		`{"bare": null}`:                        `1:10: bare: null: leave the key out instead`,
		`{"words": {"a.b": {"depth": "x"}}}`:    `1:29: words["a.b"].depth: "x": must be a number`,
		`{"outer.words.x": 1}`:                  `1:2: ["outer.words.x"]: unknown key; allowed are `,
		`{"": 1}`:                               `1:2: [""]: unknown key; allowed are `,
		`{"bytes": [` + strings.Repeat("9", 61): ``, // is no JSON
		`{"bytes": [` + strings.Repeat("9", 61) + "]}":            `1:12: bytes[0]: a number: must be 0 to 255`,
		`{"words": {"` + strings.Repeat("k", 256) + `": {}}}`:     `1:12: words["kkkkkkkkkk..."]: 256 bytes in a key; at most 255 are allowed`,
		"{\n\"word\": \"\xff\"}":                                  ``,
		"{\"words\": {\"a\": 1, \"a.depth\": {},\n \"a\": {}, }}": "1:17: words.a: 1: must be an object",
	} {
		r, err := conf.Read([]byte(text), new(kinds), nil)
		if want == "" {
			if err == nil {
				t.Errorf("%s: no error", text)
			}
		} else if err != nil || r.Err() == nil || !strings.HasPrefix(r.Err().Error(), want) {
			t.Errorf("%s: %v, %v\nwant %s", text, err, r.Err(), want)
		}
	}
	for text, want := range map[string]string{
		"{\n \"word\": \"\xff\"}":  "2:11: not valid UTF-8",
		"{\"word\": \"a\n\nb\"}":   `1:12: invalid character '\n' in string literal`,
		`{"a": 1} // no newline x`: "",
	} {
		_, err := conf.Read([]byte(text), new(kinds), nil)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestWriteWrong(t *testing.T) {
	for want, x := range map[string]any{
		`conf: Write: wait: -1s: must not be negative`:                        kinds{common: common{Wait: -time.Second}},
		`conf: Write: nevers: 0s; in a file it means never`:                   kinds{Nevers: []time.Duration{0}},
		`conf: Write: words: a: nil in a list or map; a file cannot have it`:  &kinds{Words: map[word]*Inner{"a": nil}},
		`conf: Write: any: a file cannot set a interface {}`:                  kinds{Any: 1},
		`conf: Write: ints: a file cannot set a map[int]int`:                  kinds{Ints: map[int]int{1: 2}},
		`conf: Write: <nil>: must be a struct or a pointer to one`:            nil,
		`conf: Write: *conf_test.kinds: must be a struct or a pointer to one`: (*kinds)(nil),
	} {
		if text, err := conf.Write(x); err == nil || err.Error() != want {
			t.Errorf("%s, %v, want %s", text, err, want)
		}
	}
}

// strict is a config whose wrong values are an error, as those of node.Config are.
type strict config

func (c *strict) UnmarshalJSON(text []byte) error {
	r, err := conf.Read(text, c, nil)
	if err == nil {
		err = r.Err()
	}
	return err
}

// A daemon's file has a configuration that reads itself: what is wrong in it is at its place in the file.
func TestWithin(t *testing.T) {
	type daemon struct {
		Log  string `json:"log,omitzero"`
		Node strict `json:"node,omitzero"`
	}
	var d daemon
	r, err := conf.Read([]byte(`{
	"log": 1,
	"node": {
		// of two
		"networks": [{"vni": 1}, {"vni": "2"}],
		"more": 1, "level": 5,
	},
}`), &d, nil)
	check.OK(t, err)
	r.Ask("node", d.Node, func() error {
		own := new(conf.Report)
		own.Fail("level", nil, "5 is odd")
		return own.Err()
	})
	const want = `2:9: log: 1: must be a string
5:36: node.networks[1].vni: "2": must be a number
6:11: node.more: unknown key; allowed are labels, level, name, networks, on
6:23: node.level: 5 is odd`
	if r.Err() == nil || r.Err().Error() != want {
		t.Errorf("%v\nwant\n%s", r.Err(), want)
	}
}

// Names in a file are no keys: an error is at its own, and hides no other.
func TestNames(t *testing.T) {
	var c config
	r := check.Must(conf.Read([]byte(`{"networks[0].wait": 1, "networks": [{"vni": 1, "wait": "2h"}], "labels": {"a.b": -1, "a": 1}}`), &c, nil))(t)
	if r.Failed("labels.a") {
		t.Error("a has failed, which is right")
	}
	r.Ask("networks[0]", c.Networks[0], c.Networks[0].Check)
	r.Fail("labels.a", nil, "is odd")
	const want = `1:57: networks[0].wait: 2h0m0s: must be at most an hour
1:83: labels["a.b"]: -1: must be 0 to 65535
1:92: labels.a: is odd`
	if _, got, _ := strings.Cut(r.Err().Error(), "\n"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// What is wrong with the whole follows from a value that is wrong, and an error without a prefix is one.
func TestAskWhole(t *testing.T) {
	r := new(conf.Report)
	r.Ask("b", 0, func() error { return errors.New("bad\nand worse") })
	r.Fail("a", nil, "first")
	r.Ask("", config{}, func() error { return errors.New("test: the whole") })
	r.Ask("", config{}, func() error { return setting.Errors{{Config: "test: Config", Text: "the whole"}} })
	if got, want := r.Err().Error(), "b: bad; and worse\na: first"; got != want || !r.Failed("") {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Whatever a text is, it is read in time and memory of its length. Time of its square would be many minutes.
func TestHostile(t *testing.T) {
	many := func(before, x, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(x, (1<<20)/len(x)), ",") + after
	}
	long := strings.Repeat("k", 1<<18)
	for name, text := range map[string]string{
		"objects":        many(`{"networks": [`, `{},`, `]}`),
		"unknown keys":   many(`{`, `"a":0,`, `}`),
		"a line":         many(`{"networks": [`, `0,`, `]}`),
		"no errors":      many(`{"name": "a", "networks": [{"vni":1,"peers": [`, `"",`, `]}]}`),
		"a long name":    `{"labels": {"` + long + `": 0}, ` + many(`"networks": [`, `0,`, `]}`),
		"dots":           many(`{"labels": {"`, `.`, `": -1}}`),
		"a long key":     many(`{"`, `.`, `": -1}`),
		"a long number":  many(`{"level": `, `1`, `}`),
		"a long literal": many(`{"level": `, `x`, `}`),
		"names":          many(`{"labels": {`, `"[[[[":-1,`, `}}`),
		"not UTF-8":      many(`{"name": "`, `a`, `"}`) + "\xff",
	} {
		begun := time.Now()
		var c config
		r, err := conf.Read([]byte(text), &c, nil)
		if err == nil {
			for i := range 2 * conf.MaxErrors {
				r.Fail(fmt.Sprintf("networks[%d].wait", i), nil, "%s", long[:1<<14])
			}
			err = r.Err()
		}
		if n := len(err.Error()); n > 8<<20 || time.Since(begun) > time.Minute {
			t.Errorf("%s: %v, %d bytes of errors", name, time.Since(begun), n)
		}
	}
}

// FuzzRead: what can be read can be written, and is the same when it is read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(kindsText))
	for _, text := range []string{
		`{}`, `{"nested": 1e3}`, `{"raw": null}`, `{"raw": "\ud800"}`, `{"far": {"::ffff:1.2.3.4": {}, "1.2.3.4": {}}}`, `{"words": {"a": {}, "a": {}}}`,
		`{"wait": "-0s"}`, `{"wait": "2562047h47m16.854775807s"}`, `{"float": -0, "depth": 3.4028236e38}`, `{"big": "x"}`, `{"pair": ["a", "b",],}`,
		`{"tagged": {"in": "\u0000"}}`, `[/* */]`, `{"depth": 1} //`, `{"any": 1, "func": 2, "ints": {"1": 1}}`, `{"words[0]": {}, "": 0}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var k kinds
		begun := time.Now()
		r, err := conf.Read(text, &k, nil)
		if err == nil {
			err = r.Err()
		}
		if time.Since(begun) > 10*time.Second {
			t.Errorf("read in %v", time.Since(begun))
		}
		if err == nil {
			again(t, k)
			return
		}
		var errs setting.Errors
		if !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("%T", err)
		}
		lines := strings.Split(string(text), "\n")
		for _, e := range errs {
			if e.Text == "and more" && e.Line == 0 {
				continue
			}
			if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len(lines[e.Line-1])+1 || e.Reason() == "" || strings.Contains(e.Error(), "\n") {
				t.Fatalf("%d:%d of %d lines: %v", e.Line, e.Column, len(lines), e)
			}
		}
	})
}
