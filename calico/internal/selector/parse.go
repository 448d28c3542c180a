package selector

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of a text, which strangers may have written.
const (
	MaxLength = 1 << 16 // bytes
	MaxDepth  = 64      // of parentheses in parentheses
	MaxLabel  = 512     // bytes of a label's name
)

// Parse reads a selector. Its error says where in the text it is.
func Parse(text string) (*Selector, error) {
	if len(text) > MaxLength {
		return nil, fmt.Errorf("selector: %d bytes; must be at most %d", len(text), MaxLength)
	}
	p := &parser{text: text}
	if p.space(); p.at == len(text) {
		return All(), nil
	}
	n, err := p.either()
	if err == nil && p.at < len(text) {
		err = errors.New("must end here")
	}
	if err != nil {
		return nil, fmt.Errorf("selector %q: at byte %d: %w", shown(text), p.at, err)
	}
	return &Selector{root: n}, nil
}

// shown is the beginning of a text for an error.
func shown(text string) string {
	if len(text) > 200 {
		return text[:200] + "..."
	}
	return text
}

type parser struct {
	text  string
	at    int
	depth int
}

func (p *parser) rest() string { return p.text[p.at:] }

func (p *parser) space() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

// take skips a symbol and the space behind it, if it is next.
func (p *parser) take(symbol string) bool {
	if !strings.HasPrefix(p.rest(), symbol) {
		return false
	}
	p.at += len(symbol)
	p.space()
	return true
}

// words is take for words with any space between them. What follows an operator is no part of a name.
func (p *parser) words(list ...string) bool {
	from := p.at
	for _, w := range list {
		if !p.take(w) {
			p.at = from
			return false
		}
	}
	return true
}

// either reads terms of ||.
func (p *parser) either() (node, error) {
	var list or
	for {
		n, err := p.both()
		if err != nil {
			return nil, err
		}
		if o, ok := n.(or); ok {
			list = append(list, o...)
		} else {
			list = append(list, n)
		}
		if p.take("||") {
			continue
		}
		if len(list) == 1 {
			return list[0], nil
		}
		return list, nil
	}
}

// both reads terms of &&.
func (p *parser) both() (node, error) {
	var list []*Selector
	for {
		n, err := p.term()
		if err != nil {
			return nil, err
		}
		if list = append(list, &Selector{n}); !p.take("&&") {
			return And(list...).root, nil
		}
	}
}

// term reads what ! may stand before.
func (p *parser) term() (node, error) {
	negated := false
	for p.take("!") {
		negated = !negated
	}
	n, err := p.plain()
	if err == nil && negated {
		n = (&Selector{n}).Not().root
	}
	return n, err
}

func (p *parser) plain() (node, error) {
	switch {
	case p.take("("):
		if p.depth++; p.depth > MaxDepth {
			return nil, fmt.Errorf("more than %d parentheses in each other", MaxDepth)
		}
		defer func() { p.depth-- }()
		n, err := p.either()
		if err != nil {
			return nil, err
		}
		return n, p.close()
	case p.take("has("):
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		return has(name), p.close()
	case p.take("all("):
		return everything("all()"), p.close()
	case p.take("global("):
		return everything("global()"), p.close()
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	return p.compare(name)
}

func (p *parser) close() error {
	if !p.take(")") {
		return errors.New(`must be ")"`)
	}
	return nil
}

func (p *parser) compare(label string) (node, error) {
	c := &compare{label: label}
	switch {
	case p.take("=="):
		c.op = equal
	case p.take("!="):
		c.op = unequal
	case p.take("contains"):
		c.op = contains
	case p.words("starts", "with"):
		c.op = startsWith
	case p.words("ends", "with"):
		c.op = endsWith
	case p.words("not", "in"):
		c.op = notIn
	case p.take("in"):
		c.op = in
	default:
		return nil, fmt.Errorf("must be one of %s", strings.Join(operators[:], ", "))
	}
	if c.op == in || c.op == notIn {
		return c, p.set(c)
	}
	v, ok, err := p.value()
	if err == nil && !ok {
		err = errors.New("must be a value in quotes")
	}
	c.values = []string{v}
	return c, err
}

// set reads the values of a set, which may be none, and may end with a comma.
func (p *parser) set(c *compare) error {
	if !p.take("{") {
		return errors.New(`must be "{"`)
	}
	for {
		v, ok, err := p.value()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		c.values = append(c.values, v)
		if !p.take(",") {
			break
		}
	}
	if !p.take("}") {
		return errors.New(`must be "}"`)
	}
	c.values = sorted(c.values)
	return nil
}

// value reads what is in quotes, if there are any.
func (p *parser) value() (v string, ok bool, err error) {
	rest := p.rest()
	if rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return "", false, nil
	}
	end := strings.IndexByte(rest[1:], rest[0])
	if end < 0 {
		return "", false, errors.New("the quote has no end")
	}
	p.at += end + 2
	p.space()
	return rest[1 : end+1], true, nil
}

// name reads the name of a label.
func (p *parser) name() (string, error) {
	from := p.at
	for p.at < len(p.text) && named(p.text[p.at]) {
		p.at++
	}
	name := p.text[from:p.at]
	switch {
	case name == "":
		return "", errors.New("must be the name of a label")
	case len(name) > MaxLabel:
		return "", fmt.Errorf("the name of the label has %d bytes; must be at most %d", len(name), MaxLabel)
	}
	p.space()
	return name, nil
}

// named reports whether a byte may be in the name of a label.
func named(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '/' || c == '-'
}
