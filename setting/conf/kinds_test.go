package conf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
)

type word string

// An own type of a program has settings embedded by pointer.
type Inner struct {
	Depth float32 `json:"depth,omitzero"`
	Same  int     `json:"same,omitzero"`
}

type Tagged struct {
	In string `json:"in,omitzero"`
}

// kinds has one setting of each kind.
type kinds struct {
	*Inner
	common
	Tagged `json:"tagged,omitzero"`

	Outer  int                   `json:"same,omitzero"` // stands for Inner.Same
	Word   word                  `json:"word,omitzero"`
	Float  float64               `json:"float,omitzero"`
	Pair   [2]string             `json:"pair,omitzero"`
	Nested **int                 `json:"nested,omitzero"`
	Bare   *int                  `json:"bare"` // left out where it is nil, without omitzero
	List   []string              `json:"list"`
	Raw    json.RawMessage       `json:"raw"`
	Big    big.Int               `json:"big,omitzero"` // whose methods are those of the pointer
	Words  map[word]*Inner       `json:"words,omitempty"`
	Far    map[netip.Addr]common `json:"far,omitempty"`
	Never  time.Duration         `json:"never" zero:"never"`
	Nevers []time.Duration       `json:"nevers,omitempty" zero:"never"`
	VNI    *frame.VNI            `json:"vni,omitzero"`
	Bytes  []byte                `json:"bytes,omitempty"`
	Any    any                   `json:"any,omitempty"`
	Func   func()                `json:"func,omitzero"`
	Ints   map[int]int           `json:"ints,omitempty"`
}

const kindsText = `{"depth": 1.5, "same": 3, "word": "a<b&c>\u2028", "float": -1e-7, "pair": ["", "x"], "nested": 7, "bare": 0, "list": [],
	"raw": {"a": [1, 2,], /* no more */}, "big": 123456789012345678901234567890, "words": {"": {}, "10.0/8": {"depth": 2}},
	"far": {"fe80::1%eth0": {"ageing": "0s"}, "10.0.0.1": {"wait": "1h0m0.000000001s"}}, "never": "0s", "nevers": ["0s", "1s"],
	"vni": 0, "bytes": [0, 255], "tagged": {"in": "x"}} // no newline here`

func TestKinds(t *testing.T) {
	var k kinds
	r, err := conf.Read([]byte(kindsText), &k, nil)
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	if k.Inner == nil || k.Depth != 1.5 || k.Same != 0 || k.Outer != 3 || k.Pair[1] != "x" || **k.Nested != 7 || k.Never >= 0 || k.Nevers[0] >= 0 ||
		k.Words["10.0/8"].Depth != 2 || k.Far[netip.MustParseAddr("10.0.0.1")].Wait != time.Hour+1 || *k.VNI != 0 || k.In != "x" || k.List == nil {
		t.Errorf("%+v", k)
	}
	again(t, k)
	again(t, kinds{})
	again(t, kinds{Inner: new(Inner), Raw: json.RawMessage(`"x"`)})
}

// What is not exported is no setting, whatever its tag.
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
	text, err := conf.Write(k)
	if err != nil {
		t.Fatal(err)
	}
	var back kinds
	r, err := conf.Read(text, &back, nil)
	if err != nil || r.Err() != nil {
		t.Fatalf("%s: %v, %v", text, err, r.Err())
	}
	if k.Inner != nil && *k.Inner == (Inner{}) && back.Inner == nil { // embedded, it has no key to say that it is there
		back.Inner = k.Inner
	}
	if !reflect.DeepEqual(back, k) {
		t.Fatalf("%s:\n%+v\n%+v", text, back, k)
	}
}

func TestKindsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"float": 1e999}`:                             `1:11: float: 1e999; wanted is a number of 64 bits`,
		`{"pair": ["x"]}`:                              `1:10: pair: a list of 1; wanted is one of 2`,
		`{"any": {"a": 1}}`:                            `1:9: any: a value of type interface {} cannot be in a file`,
		`{"func": 0}`:                                  `1:10: func: a value of type func() cannot be in a file`,
		`{"ints": {"1": 2}}`:                           `1:10: ints: a value of type map[int]int cannot be in a file`,
		`{"in": "x"}`:                                  `1:2: in: there is no such key; allowed are `,
		`{"bare": null}`:                               `1:10: bare: null; leave the key out instead`,
		`{"far": {"x": {}}}`:                           `1:10: far.x: "x"; wanted is an IP address such as 10.0.0.1`,
		`{"far": {"::1": {}, "0::1": {}}}`:             `1:21: far["0::1"]: the key is there twice`,
		`{"words": {"a.b": {"depth": "x"}}}`:           `1:29: words["a.b"].depth: "x"; wanted is a number`,
		`{"outer.words.x": 1}`:                         `1:2: ["outer.words.x"]: there is no such key; allowed are `,
		`{"": 1}`:                                      `1:2: [""]: there is no such key; allowed are `,
		`{"bytes": [` + strings.Repeat("9", 61):        ``, // is no JSON
		`{"bytes": [` + strings.Repeat("9", 61) + "]}": `1:12: bytes[0]: a number; allowed are 0 to 255`,
		`{"words": {"` + strings.Repeat("k", 256) + `": {}}}`:     `1:12: words["kkkkkkkkkk..."]: a key of 256 bytes; allowed are up to 255`,
		"{\n\"word\": \"\xff\"}":                                  ``,
		"{\"words\": {\"a\": 1, \"a.depth\": {},\n \"a\": {}, }}": "1:17: words.a: 1; wanted is an object",
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
		"{\n \"word\": \"\xff\"}":  "2:11: is no UTF-8",
		"{\"word\": \"a\n\nb\"}":   `1:10: invalid literal: "a; ; b"`,
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
		`conf: Write: wait: -1s; no file has a negative duration here`:                   kinds{common: common{Wait: -time.Second}},
		`conf: Write: nevers: 0s, which in a file is never`:                              kinds{Nevers: []time.Duration{0}},
		`conf: Write: words: a: nil; no file has it in a list, or in an object of names`: &kinds{Words: map[word]*Inner{"a": nil}},
		`conf: Write: any: a value of type interface {}, which no file has`:              kinds{Any: 1},
		`conf: Write: ints: a map of int, which no file has`:                             kinds{Ints: map[int]int{1: 2}},
		`conf: Write: <nil>; wanted is a struct, or a pointer to one`:                    nil,
		`conf: Write: *conf_test.kinds; wanted is a struct, or a pointer to one`:         (*kinds)(nil),
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
	if err != nil {
		t.Fatal(err)
	}
	r.Ask("node", d.Node, func() error {
		own := new(conf.Report)
		own.Fail("level", "5 is odd")
		return own.Err()
	})
	const want = `2:9: log: 1; wanted is a string
5:36: node.networks[1].vni: "2"; wanted is a number
6:11: node.more: there is no such key; allowed are labels, level, name, networks, on
6:23: node.level: 5 is odd`
	if r.Err() == nil || r.Err().Error() != want {
		t.Errorf("%v\nwant\n%s", r.Err(), want)
	}
}

// Names in a file are no keys: an error is at its own, and hides no other.
func TestNames(t *testing.T) {
	var c config
	r, err := conf.Read([]byte(`{"networks[0].wait": 1, "networks": [{"vni": 1, "wait": "2h"}], "labels": {"a.b": -1, "a": 1}}`), &c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed("labels.a") {
		t.Error("a has failed, which is right")
	}
	r.Ask("networks[0]", c.Networks[0], c.Networks[0].Check)
	r.Fail("labels.a", "is odd")
	const want = `1:57: networks[0].wait: 2h0m0s, allowed is an hour
1:83: labels["a.b"]: -1; allowed are 0 to 65535
1:92: labels.a: is odd`
	if _, got, _ := strings.Cut(r.Err().Error(), "\n"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// What is wrong with the whole follows from a value that is wrong, and an error without a prefix is one.
func TestAskWhole(t *testing.T) {
	r := new(conf.Report)
	r.Ask("b", 0, func() error { return errors.New("bad\nand worse") })
	r.Fail("a", "first")
	r.Ask("", config{}, func() error { return errors.New("test: the whole") })
	r.Ask("", config{}, func() error { return setting.Errors{{Config: "test: Config", Text: "the whole"}} })
	if got, want := r.Err().Error(), "b: bad; and worse\na: first"; got != want || !r.Failed("") {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Whatever a text is, it is read in time and memory of its length.
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
	} {
		begun := time.Now()
		var c config
		r, err := conf.Read([]byte(text), &c, nil)
		if err == nil {
			for i := range 2 * conf.MaxErrors {
				r.Fail(fmt.Sprintf("networks[%d].wait", i), "%s", long)
			}
			err = r.Err()
		}
		if n := len(err.Error()); n > 8<<20 || time.Since(begun) > 5*time.Second {
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
		var errs conf.Errors
		if !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("%T", err)
		}
		lines := strings.Split(string(text), "\n")
		for _, e := range errs {
			if e.Text == "and more" && e.Line == 0 {
				continue
			}
			if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len(lines[e.Line-1])+1 || e.Text == "" || strings.Contains(e.Error(), "\n") {
				t.Fatalf("%d:%d of %d lines: %v", e.Line, e.Column, len(lines), e)
			}
		}
	})
}
