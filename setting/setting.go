// Package setting reports errors in settings, and reads and writes the words of enums.
//
// Every Config whose settings a file can have has a Check method. It returns [Errors]: an [Error] for each setting that is
// wrong. Constructors return the same errors.
package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Error reports a setting that is wrong.
type Error struct {
	Config       string // struct of the setting, such as "vtep: Config"; "" if Path is a key of a file
	Line, Column int    // position in the file, from 1; 0 without a file
	Path         string // Header.TTL, or in a file segments[0].flood[1]; "" for the settings as a whole
	Value        any    // value that is wrong; nil if the setting is missing or the error is about several
	Allowed      string // values that the setting may have, such as "1 to 255"; "" if Text has the reason
	Text         string // reason other than Allowed
}

// Error returns "vtep: Config.Header.TTL: 300: must be 1 to 255", or for a file
// "12:7: tunnels[0].ttl: 300: must be 1 to 255", on one line.
func (e *Error) Error() string {
	s := e.Reason()
	if e.Value != nil {
		s = e.Shown() + ": " + s
	}
	switch {
	case e.Config != "" && e.Path != "":
		s = e.Config + "." + e.Path + ": " + s
	case e.Config+e.Path != "":
		s = e.Config + e.Path + ": " + s
	}
	if e.Line > 0 {
		s = fmt.Sprintf("%d:%d: %s", e.Line, e.Column, s)
	}
	return s
}

// Reason returns what is wrong, without the path and the value.
func (e *Error) Reason() string {
	if e.Allowed != "" {
		return oneLine("must be " + e.Allowed)
	}
	return oneLine(e.Text)
}

// A Literal is a Value as text in the syntax of a file. It is shown without further quotes.
type Literal string

// Shown returns the value as text, a string in quotes.
func (e *Error) Shown() string {
	if s, ok := e.Value.(string); ok {
		return oneLine(fmt.Sprintf("%q", s))
	}
	return oneLine(fmt.Sprint(e.Value))
}

// oneLine returns a text on one line, shortened to a few kilobytes.
func oneLine(text string) string {
	const most = 4096
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

// Errors are the errors of a Config, or of a file in the order of their positions.
type Errors []*Error

// Error returns the errors, one on each line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// A Check collects the errors of a Config.
type Check struct {
	config string
	errs   Errors
}

// Of returns a Check of a Config with a name such as "vtep: Config".
func Of(config string) *Check { return &Check{config: config} }

// Want adds an error: the value of a setting is not allowed. The format describes the values that are, as
// in "1 to 255".
func (c *Check) Want(path string, value any, format string, args ...any) {
	c.errs = append(c.errs, &Error{Config: c.config, Path: path, Value: value, Allowed: fmt.Sprintf(format, args...)})
}

// Wrong adds an error for another reason, such as a conflict with other settings. A value of nil is not shown.
func (c *Check) Wrong(path string, value any, format string, args ...any) {
	c.errs = append(c.errs, &Error{Config: c.config, Path: path, Value: value, Text: fmt.Sprintf(format, args...)})
}

// Number adds an error if n is neither 0, which means usual, nor between least and most.
func (c *Check) Number(path string, n, least, most, usual int) {
	if n != 0 && (n < least || n > most) {
		c.Want(path, n, "%d to %d, or 0 for %d", least, most, usual)
	}
}

// Limit adds an error if n is negative.
func (c *Check) Limit(path string, n int) {
	if n < 0 {
		c.Want(path, n, "0 or more")
	}
}

// Add adds the errors of the Check of a part; the path is "" for an embedded part.
func (c *Check) Add(path string, err error) {
	if err == nil {
		return
	}
	var es Errors
	if !errors.As(err, &es) {
		c.Wrong(path, nil, "%v", err)
	}
	for _, e := range es {
		x := *e
		x.Config, x.Path = c.config, strings.Trim(path+"."+e.Path, ".")
		c.errs = append(c.errs, &x)
	}
}

// Err returns the errors as Errors, or nil.
func (c *Check) Err() error {
	if len(c.errs) == 0 {
		return nil
	}
	return c.errs
}

// Name returns the word for a value, "invalid" if it has none.
func Name[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return "invalid"
}

// Or returns words as text, such as "tap, tun or packet".
func Or(words ...string) string {
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return strings.Join(words, "")
}

// Parse sets to to the value of a word. The error is an [*Error].
func Parse[T ~uint8](to *T, words []string, text []byte) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		return &Error{Value: string(text), Allowed: "one of " + strings.Join(words, ", ")}
	}
	*to = T(i)
	return nil
}
