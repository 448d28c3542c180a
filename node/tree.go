package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A value is a JSON value that knows where it is in its file.
type value struct {
	at     int // its first byte
	end    int // behind its last
	token  any // string, json.Number, bool or nil, of what is neither object nor array
	object []member
	array  []*value
	is     kindOf
}

type member struct {
	key string
	at  int // of the key
	v   *value
}

type kindOf uint8

const (
	isString kindOf = iota
	isNumber
	isBool
	isNull
	isObject
	isArray
)

func (k kindOf) String() string {
	return [...]string{"a string", "a number", "true or false", "null", "an object", "a list"}[k]
}

// A reader makes values of text.
type reader struct {
	text  []byte
	d     *json.Decoder
	depth int
}

// maxDepth is far deeper than a configuration is.
const maxDepth = 100

// read makes a tree of a whole file. The error is what is no JSON, and where.
func read(text []byte) (v *value, at int, err error) {
	r := &reader{text: text, d: json.NewDecoder(bytes.NewReader(text))}
	r.d.UseNumber()
	v, err = r.value()
	if err == nil {
		if at := r.next(); at < len(text) {
			return nil, at, errors.New("something follows the end of the configuration")
		}
		return v, 0, nil
	}
	at = int(r.d.InputOffset())
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = int(syntax.Offset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = len(text), errors.New("the file ends in the middle")
	}
	return nil, at, err
}

// next returns where the next token begins.
func (r *reader) next() int {
	at := int(r.d.InputOffset())
	for at < len(r.text) && bytes.IndexByte([]byte(" \t\r\n,:"), r.text[at]) >= 0 {
		at++
	}
	return at
}

func (r *reader) value() (*value, error) {
	v := &value{at: r.next()}
	t, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if r.depth++; r.depth > maxDepth {
			return nil, fmt.Errorf("lists and objects are in each other more than %d deep", maxDepth)
		}
		if t == '[' {
			v.is, err = isArray, r.array(v)
		} else {
			v.is, err = isObject, r.object(v)
		}
		r.depth--
	case string:
		v.is, v.token = isString, t
	case json.Number:
		v.is, v.token = isNumber, t
	case bool:
		v.is, v.token = isBool, t
	default:
		v.is = isNull
	}
	v.end = int(r.d.InputOffset())
	return v, err
}

func (r *reader) array(v *value) error {
	for r.d.More() {
		x, err := r.value()
		if err != nil {
			return err
		}
		v.array = append(v.array, x)
	}
	_, err := r.d.Token()
	return err
}

func (r *reader) object(v *value) error {
	for r.d.More() {
		at := r.next()
		t, err := r.d.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return fmt.Errorf("%v is no key", t)
		}
		x, err := r.value()
		if err != nil {
			return err
		}
		v.object = append(v.object, member{key, at, x})
	}
	_, err := r.d.Token()
	return err
}
