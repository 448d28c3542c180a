package conf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/vxswitch/vxswitch/setting"
)

// A node is a value in a file, or the name of one.
type node struct {
	at, end int    // offsets in the text
	list    []node // elements of a list; of an object names and values in turn
}

// parse returns a text as JSON without comments, at the same offsets, and the value in it.
func parse(text []byte) ([]byte, *node, *setting.Error) {
	plain, at, err := standard(text)
	if err == nil {
		var syntax *json.SyntaxError
		var raw json.RawMessage
		if errors.As(json.Unmarshal(append(plain, ' '), &raw), &syntax) {
			if at, err = int(syntax.Offset)-1, syntax; at >= len(text) {
				err = errEnd
			} else if c, n := utf8.DecodeRune(plain[at:]); n > 1 { // encoding/json has its first byte
				if err = fmt.Errorf("invalid character %q", c); c == '\ufeff' {
					err = errors.New("a byte order mark: save the file as UTF-8 without one")
				}
			}
		}
	}
	if err != nil {
		line, column := position(text, at)
		return nil, nil, &setting.Error{Line: line, Column: column, Text: err.Error()}
	}
	root, _ := scan(plain, 0)
	return plain, &root, nil
}

var errEnd = errors.New("unexpected end of the file")

// maxDepth is far deeper than any configuration.
const maxDepth = 100

// standard returns a copy of a text with blanks in place of comments and trailing commas. On an error it returns
// its offset.
func standard(text []byte) (plain []byte, at int, err error) {
	if !utf8.Valid(text) { // RFC 8259, section 8.1
		rest := text
		for c, n := utf8.DecodeRune(rest); c != utf8.RuneError || n > 1; c, n = utf8.DecodeRune(rest) {
			rest = rest[n:]
		}
		return nil, len(text) - len(rest), errors.New("not valid UTF-8")
	}
	plain = bytes.Clone(text)
	depth, comma, value := 0, -1, false // comma: the last one if only blanks follow; value: one has ended before
	for i := 0; i < len(plain); {
		start, c := i, plain[i]
		switch i++; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		case bytes.HasPrefix(plain[start:], []byte("//")):
			i = blank(plain, start, bytes.IndexByte(plain[start:], '\n'))
			continue
		case bytes.HasPrefix(plain[start:], []byte("/*")):
			n := bytes.Index(plain[i+1:], []byte("*/"))
			if n < 0 {
				return nil, len(text), errEnd
			}
			i = blank(plain, start, n+4)
			continue
		case c == '"':
			i = quoted(plain, start)
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return nil, start, fmt.Errorf("lists and objects are nested more than %d deep", maxDepth)
			}
		case c == ']' || c == '}':
			if depth--; comma >= 0 {
				plain[comma] = ' '
			}
		}
		if comma = -1; c == ',' && value {
			comma = start
		}
		value = strings.IndexByte("[{,:", c) < 0
	}
	return plain, 0, nil
}

// blank overwrites the next n bytes from i on, or the rest of the text if n is negative, except for newlines. It
// returns the offset behind them.
func blank(text []byte, i, n int) int {
	end := i + n
	if n < 0 {
		end = len(text)
	}
	for ; i < end; i++ {
		if text[i] != '\n' {
			text[i] = ' '
		}
	}
	return end
}

// quoted returns the offset behind the string that begins at i.
func quoted(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(text))
}

// scan returns the value at i or behind blanks, in valid JSON, and the offset behind it.
func scan(text []byte, i int) (n node, end int) {
	for strings.IndexByte(" \t\r\n,:", text[i]) >= 0 {
		i++
	}
	n.at = i
	switch text[i] {
	case '"':
		n.end = quoted(text, i)
	case '[', '{':
		for i++; ; {
			for strings.IndexByte(" \t\r\n,:", text[i]) >= 0 {
				i++
			}
			if text[i] == ']' || text[i] == '}' {
				break
			}
			var x node
			x, i = scan(text, i)
			n.list = append(n.list, x)
		}
		n.end = i + 1
	default:
		for n.end = i; n.end < len(text) && strings.IndexByte(" \t\r\n,:]}", text[n.end]) < 0; {
			n.end++
		}
	}
	return n, n.end
}

// position returns the line and column of an offset, both from 1.
func position(text []byte, at int) (line, column int) {
	before := text[:min(at, len(text))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}
