package pcapfilter

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/bpf"
)

// constants is the names of numbers.
var constants = map[string]uint32{
	"icmptype": 0, "icmpcode": 1, "icmp6type": 0, "icmp6code": 1, "tcpflags": 13,
	"tcp-fin": 1, "tcp-syn": 2, "tcp-rst": 4, "tcp-push": 8, "tcp-ack": 16, "tcp-urg": 32, "tcp-ece": 64, "tcp-cwr": 128,
	"icmp-echoreply": 0, "icmp-unreach": 3, "icmp-sourcequench": 4, "icmp-redirect": 5, "icmp-echo": 8, "icmp-routeradvert": 9,
	"icmp-routersolicit": 10, "icmp-timxceed": 11, "icmp-paramprob": 12, "icmp-tstamp": 13, "icmp-tstampreply": 14, "icmp-ireq": 15,
	"icmp-ireqreply": 16, "icmp-maskreq": 17, "icmp-maskreply": 18,
	"icmp6-destinationunreach": 1, "icmp6-packettoobig": 2, "icmp6-timeexceeded": 3, "icmp6-parameterproblem": 4, "icmp6-echo": 128,
	"icmp6-echoreply": 129, "icmp6-multicastlistenerquery": 130, "icmp6-multicastlistenerreportv1": 131,
	"icmp6-multicastlistenerdone": 132, "icmp6-routersolicit": 133, "icmp6-routeradvert": 134, "icmp6-neighborsolicit": 135,
	"icmp6-neighboradvert": 136, "icmp6-redirect": 137,
}

var relations = map[string]bpf.JumpTest{
	"=": bpf.JumpEqual, "==": bpf.JumpEqual, "!=": bpf.JumpNotEqual, ">": bpf.JumpGreaterThan, ">=": bpf.JumpGreaterOrEqual,
	"<": bpf.JumpLessThan, "<=": bpf.JumpLessOrEqual,
}

// operators bind the more strongly the higher the level. In libpcap, % and ^ have no level: they take all that follows as
// their right side, and need parentheses here.
var operators = map[string]struct {
	level int
	op    bpf.ALUOp
}{
	"|": {1, bpf.ALUOpOr}, "&": {2, bpf.ALUOpAnd}, "<<": {3, bpf.ALUOpShiftLeft}, ">>": {3, bpf.ALUOpShiftRight},
	"+": {4, bpf.ALUOpAdd}, "-": {4, bpf.ALUOpSub}, "*": {5, bpf.ALUOpMul}, "/": {5, bpf.ALUOpDiv},
	"%": {0, bpf.ALUOpMod}, "^": {0, bpf.ALUOpXor},
}

// isRelation reports whether the next term compares values.
func (p *parser) isRelation() bool {
	w := p.peek()
	if _, ok := constants[w.text]; w.kind == number || ok && w.kind == name || w.is("len", "length", "-") || w.is(protocols...) && p.list[p.at+1].is("[") {
		return true
	}
	if !w.is("(") {
		return false
	}
	// A value in parentheses, or a condition: look behind the one that closes.
	depth := 0
	for i := p.at; p.list[i].kind != end; i++ {
		switch {
		case p.list[i].is("(", "["):
			depth++
		case p.list[i].is(")", "]"):
			depth--
		}
		if depth > 0 {
			continue
		}
		return p.compares(&p.list[i+1])
	}
	return false
}

// relation reads two values and how they compare.
func (p *parser) relation() (node, error) {
	first := p.peek()
	a, err := p.value(1)
	if err != nil {
		return nil, err
	}
	w := p.take()
	op, ok := relations[w.text]
	if !ok || w.kind != sign {
		return nil, p.unexpected(w, "must be an operator or a comparison, such as: ip[8] < 5")
	}
	b, err := p.value(1)
	if err != nil {
		return nil, err
	}
	switch {
	case a.kind == literal && b.kind == literal, a.tokens == b.tokens:
		return nil, first.wrong("is compared with itself or with another number: the result is always the same")
	case b.kind == literal && (b.k == 0 && (op == bpf.JumpGreaterOrEqual || op == bpf.JumpLessThan) ||
		b.k == 0xffffffff && (op == bpf.JumpLessOrEqual || op == bpf.JumpGreaterThan)):
		return nil, w.wrong("the result is always the same: values are 0 to 4294967295")
	case max(a.scratch+1, b.scratch) > maxScratch:
		return nil, first.wrong("is too complicated")
	}
	return both(append(append(a.checks, b.checks...), relation{op, a, b})...), nil
}

// value reads operands with operators of at least a level.
func (p *parser) value(level int) (*value, error) {
	from := p.at
	a, err := p.factor()
	if err != nil {
		return nil, err
	}
	for {
		w := p.peek()
		o, ok := operators[w.text]
		if !ok || w.kind != sign || o.level != 0 && o.level < level {
			return a, nil
		}
		if o.level == 0 && (level != 1 || !p.single(from)) {
			return nil, w.wrong("needs parentheses around it and its operands")
		}
		p.take()
		var b *value
		if o.level == 0 {
			b, err = p.factor()
		} else {
			b, err = p.value(o.level + 1)
		}
		if err != nil {
			return nil, err
		}
		if a, err = p.computed(w, o.op, a, b); err != nil {
			return nil, err
		}
		a.tokens = p.between(from)
		if next := p.peek(); o.level == 0 && p.isOperator(next) {
			return nil, next.wrong("needs parentheses around " + w.text + " and its operands")
		}
	}
}

// isOperator reports whether w computes.
func (p *parser) isOperator(w *word) bool {
	_, ok := operators[w.text]
	return ok && w.kind == sign
}

// compares reports whether w is an operator or a comparison.
func (p *parser) compares(w *word) bool {
	_, ok := relations[w.text]
	return ok && w.kind == sign || p.isOperator(w)
}

// single reports whether the words from there on are one operand.
func (p *parser) single(from int) bool {
	depth := 0
	for i := from; i < p.at; i++ {
		w := &p.list[i]
		switch {
		case w.is("(", "["):
			depth++
		case w.is(")", "]"):
			depth--
		}
		if depth == 0 && p.isOperator(w) {
			return false
		}
	}
	return true
}

// between returns the words that were read from there on.
func (p *parser) between(from int) string {
	var b strings.Builder
	for _, w := range p.list[from:p.at] {
		b.WriteString(w.text + " ")
	}
	return b.String()
}

// computed returns a op b.
func (p *parser) computed(w *word, op bpf.ALUOp, a, b *value) (*value, error) {
	shift := op == bpf.ALUOpShiftLeft || op == bpf.ALUOpShiftRight
	for _, x := range []struct {
		wrong bool
		text  string
	}{
		{b.kind == literal && b.k == 0 && (op == bpf.ALUOpDiv || op == bpf.ALUOpMod), "divides by 0"},
		{b.kind == literal && b.k > 31 && shift, "shifts by more than 31 bits"},
		{(a.kind == literal) != (b.kind == literal) && (a.kind == literal && a.k == 0 || b.kind == literal && b.k == 0) &&
			(op == bpf.ALUOpAnd || op == bpf.ALUOpMul), "the result is always 0"},
		{a.kind == literal && a.k == 0 && b.kind != literal && (shift || op == bpf.ALUOpDiv || op == bpf.ALUOpMod), "the result is always 0"},
		{b.kind == literal && b.k == 1 && op == bpf.ALUOpMod, "the result is always 0"},
		{a.kind != literal && a.tokens == b.tokens, "has the same on both sides"},
	} {
		if x.wrong {
			return nil, w.wrong(x.text)
		}
	}
	if a.kind == literal && b.kind == literal {
		return &value{kind: literal, k: folded(op, a.k, b.k)}, nil
	}
	for _, c := range b.checks { // libpcap forgets them
		if !slices.Contains(a.checks, c) {
			return nil, w.wrong("has bytes on its right side of a protocol that the left side has not: put them on the left")
		}
	}
	v := &value{kind: computed, op: op, a: a, b: b, checks: a.checks}
	v.scratch = max(a.scratch+1, b.scratch)
	if v.scratch >= maxScratch {
		return nil, w.wrong("is too complicated")
	}
	return v, nil
}

// factor reads one operand.
func (p *parser) factor() (v *value, err error) {
	if p.nested++; p.nested > maxNested {
		return nil, p.peek().wrong(fmt.Sprintf("is nested too deep: at most %d", maxNested))
	}
	defer func() { p.nested-- }()
	from := p.at
	w := p.take()
	k, isConstant := constants[w.text]
	switch {
	case w.kind == number:
		v = &value{kind: literal, k: w.value}
	case isConstant && w.kind == name:
		v = &value{kind: literal, k: k}
	case w.is("len", "length"):
		v = &value{kind: length}
	case w.is("-"):
		a, err := p.factor()
		if err != nil {
			return nil, err
		}
		if v = (&value{kind: literal, k: -a.k}); a.kind != literal {
			v = &value{kind: computed, op: bpf.ALUOpSub, a: &value{kind: literal}, b: a, checks: a.checks, scratch: max(1, a.scratch)}
		}
	case w.is("("):
		if v, err = p.value(1); err != nil {
			return nil, err
		}
		if !p.accept(")") {
			return nil, p.unexpected(p.peek(), `must be an operator or ")"`)
		}
		return v, nil // with its own tokens
	case w.is(protocols...) && p.accept("["):
		if v, err = p.bytes(w); err != nil {
			return nil, err
		}
	default:
		return nil, p.unexpected(w, "must be a number, len, or bytes of a header such as tcp[13]; put spaces around operators")
	}
	v.tokens = p.between(from)
	return v, nil
}

// bytes reads the rest of "protocol[offset:size]".
func (p *parser) bytes(w *word) (*value, error) {
	at, err := p.value(1)
	if err != nil {
		return nil, err
	}
	if at.kind == literal && at.k > maxOffset {
		return nil, w.wrong("must have an offset of at most 16777216 that is not negative")
	}
	v := &value{kind: loaded, k: p.network(), size: 1, a: at, scratch: at.scratch}
	if p.accept(":") {
		n := p.take()
		if n.kind != number || n.value != 1 && n.value != 2 && n.value != 4 {
			return nil, p.unexpected(n, "must be a number of bytes, 1, 2 or 4")
		}
		v.size = int(n.value)
	}
	if !p.accept("]") {
		return nil, p.unexpected(p.peek(), `must be an operator, ":" or "]"`)
	}
	v.checks = append(v.checks, at.checks...)
	switch w.text {
	case "ether", "link":
		v.k = 0
	case "ip", "ip6", "arp", "rarp":
		v.checks = append(v.checks, p.linkType(etherTypes[w.text]))
	case "icmp6":
		v.k += 40
		v.checks = append(v.checks, both(p.linkType(typeIPv6), equal(p.network()+6, 1, icmp6)))
	case "tcp", "udp", "sctp", "icmp", "igmp", "igrp", "pim", "vrrp", "carp":
		v.kind, v.base = behind, p.network()
		c := inIP[w.text]
		c.v6 = false // libpcap compares none of IPv6 either
		v.checks = append(v.checks, p.protocol(c), p.unfragmented())
	default:
		return nil, w.wrong("has no bytes to select")
	}
	return v, nil
}
