package setting

import (
	"errors"
	"fmt"
	"testing"
)

func TestCheck(t *testing.T) {
	part := Of("x: Part")
	part.Wrong("TTL", 7, "is a %s", "prime")
	inner := Of("x: Inner")
	inner.Number("Queues", 300, 1, 256, 1)
	inner.Number("Queues", 0, 1, 256, 1)
	inner.Limit("Max", -1)
	inner.Limit("Max", 0)
	part.Add("Rules[2]", inner.Err())
	w := Of("x: Config")
	w.Add("Header", part.Err())
	w.Add("", inner.Err())
	w.Add("Other", errors.New("is bad"))
	w.Add("Fine", Of("x: Fine").Err())
	want := `x: Config.Header.TTL: 7: is a prime
x: Config.Header.Rules[2].Queues: 300: must be 1 to 256, or 0 for 1
x: Config.Header.Rules[2].Max: -1: must be 0 or more
x: Config.Queues: 300: must be 1 to 256, or 0 for 1
x: Config.Max: -1: must be 0 or more
x: Config.Other: is bad`
	err := fmt.Errorf("open: %w", w.Err())
	var es Errors
	var e *Error
	if !errors.As(err, &es) || es.Error() != want || !errors.As(err, &e) || e.Path != "Header.TTL" || e.Value != 7 {
		t.Errorf("%v", err)
	}
	if (&Error{Config: "x: Config", Text: "is empty"}).Error() != "x: Config: is empty" {
		t.Error("the whole")
	}
}

func TestWords(t *testing.T) {
	words := []string{"on", "off"}
	var v uint8 = 9
	if Parse(&v, words, []byte("off")) != nil || v != 1 || Name(words, v) != "off" || Name(words, uint8(2)) != "invalid" {
		t.Error(v)
	}
	if got := Or(words...) + " " + Or("a", "b", "c") + " " + Or("a") + Or(); got != "on or off a, b or c a" {
		t.Errorf("%q", got)
	}
	if err := Parse(&v, words, []byte("of")); err == nil || err.Error() != `"of": must be one of on, off` || v != 1 {
		t.Error(err)
	}
}
