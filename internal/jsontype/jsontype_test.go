package jsontype

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                      "[] must be an object",
		`{"n": "x"}`:              `"x" must be a whole number`,
		`{"N": "x"}`:              `"x" must be a whole number`,
		`{"n": 1.5, "n": 2}`:      "1.5 must be a whole number",
		`{"byte": 256}`:           "256 must be a whole number, 0 to 255",
		`{"many": -1}`:            "-1 must be a whole number, 0 or more",
		`{"float": true}`:         "true must be a number",
		`{"in": {"yes": "no"}}`:   `"no" must be true or false`,
		`{"a.b/c": {"text": 5}}`:  "5 must be a string",
		`{"a.b/c": {"list": {}}}`: "{} must be a list",
		`{"in": {"map": [1]}}`:    "[1] must be an object",
		`{"list": [{"text": 5}]}`: "number must be a string",
	} {
		type part struct {
			Yes  bool
			Text string
			List []part
			Map  map[string]string
		}
		var x struct {
			N     int
			Byte  uint8
			Many  uint
			Float float64
			In    part
			Dots  part `json:"a.b/c"`
			List  []part
		}
		var e *json.UnmarshalTypeError
		if !errors.As(json.Unmarshal([]byte(text), &x), &e) {
			t.Errorf("%s: no such error", text)
			continue
		}
		if value, allowed := Explain([]byte(text), e); value+" must be "+allowed != want {
			t.Errorf("%s: %s must be %s, want %s", text, value, allowed, want)
		}
	}
}
