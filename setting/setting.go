// Package setting says what is wrong with settings, and writes the words that some of them are.
//
// Every Config of the library has a Check that returns [Errors]: all that is wrong with it, each
// with the field. Constructors return the same.
package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Error is what is wrong with one field.
type Error struct {
	Config string // whose field, such as "vtep: Config"
	Field  string // its way there, such as Header.TTL or Rules[3].Src[0]; "" for the Config as a whole
	Text   string // such as "300, allowed are 1 to 255"
}

// Error returns "vtep: Config.Header.TTL: 300, allowed are 1 to 255".
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Config + ": " + e.Text
	}
	return e.Config + "." + e.Field + ": " + e.Text
}

// Errors is all that is wrong with a Config.
type Errors []*Error

// Error returns a line for each.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each as an error.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// A Check gathers what is wrong with a Config.
type Check struct {
	config string
	errs   Errors
}

// Of returns a check of a Config, named as in "vtep: Config".
func Of(config string) *Check { return &Check{config: config} }

// Wrong notes that a field is wrong.
func (c *Check) Wrong(field, format string, args ...any) {
	c.errs = append(c.errs, &Error{c.config, field, fmt.Sprintf(format, args...)})
}

// Number notes an n that is not from least to most; 0 is allowed too, and stands for usual.
func (c *Check) Number(field string, n, least, most, usual int) {
	if n != 0 && (n < least || n > most) {
		c.Wrong(field, "%d, allowed are %d to %d, and 0 for %d", n, least, most, usual)
	}
}

// Limit notes a negative n; what stands for no limit of its own is 0.
func (c *Check) Limit(field string, n int) {
	if n < 0 {
		c.Wrong(field, "%d is negative", n)
	}
}

// Add notes what is wrong with a part of the Config that has a Check of its own, "" for one
// that is embedded.
func (c *Check) Add(field string, err error) {
	if err == nil {
		return
	}
	var es Errors
	if !errors.As(err, &es) {
		c.Wrong(field, "%v", err)
	}
	for _, e := range es {
		c.errs = append(c.errs, &Error{c.config, strings.Trim(field+"."+e.Field, "."), e.Text})
	}
}

// Err returns what was noted: Errors, or nil.
func (c *Check) Err() error {
	if len(c.errs) == 0 {
		return nil
	}
	return c.errs
}

// Name returns the word for a value, "invalid" where there is none.
func Name[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return "invalid"
}

// Parse reads one of the words that Name writes.
func Parse[T ~uint8](to *T, words []string, text []byte) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		return fmt.Errorf("%q, allowed are %s", text, strings.Join(words, ", "))
	}
	*to = T(i)
	return nil
}
