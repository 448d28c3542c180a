package pcapfilter

import (
	"fmt"
	"slices"
)

// maxNested is how deep parentheses go.
const maxNested = 64

// A parser reads words. VLAN tags that the filter has named move what follows it, as in libpcap.
type parser struct {
	list []word
	at   int
	link Link
	tags uint32 // named so far

	last   head // of the term before, which a value without words repeats
	nested int
}

// A head is the words before a value: "tcp src port".
type head struct {
	first     word // the first of them; the kind is end if there is no head
	protocol  string
	direction string // src, dst, "src and dst", or empty for one of both
	what      string // host, net, port, portrange, proto, or empty
}

// Words that select what a value is.
var (
	protocols  = []string{"ether", "link", "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp", "icmp6", "igmp", "igrp", "pim", "vrrp", "carp", "esp", "ah"}
	whats      = []string{"host", "net", "port", "portrange", "proto"}
	standalone = []string{"broadcast", "multicast", "less", "greater", "vlan"}
)

// elsewhere is words of pcap-filter(7) that are refused.
var elsewhere = []string{
	"fddi", "tr", "wlan", "ppp", "slip", "radio", "protochain", "gateway", "byte", "inbound", "outbound", "ifname", "on", "rnr", "rulenum",
	"reason", "rset", "ruleset", "srnr", "subrulenum", "action", "mpls", "pppoed", "pppoes", "geneve", "vxlan", "decnet", "lat", "moprc",
	"mopdl", "iso", "clnp", "esis", "es-is", "isis", "is-is", "l1", "l2", "iih", "lsp", "snp", "csnp", "psnp", "aarp", "atalk", "stp", "ipx",
	"netbeui", "llc", "type", "subtype", "dir", "addr1", "addr2", "addr3", "addr4", "ra", "ta", "vpi", "vci", "lane", "oam", "oamf4", "metac",
	"bcc", "sc", "ilmic", "connectmsg", "metaconnect", "fisu", "lssu", "msu", "sio", "opc", "dpc", "sls",
}

// peek returns the next word, take removes it.
func (p *parser) peek() *word { return &p.list[p.at] }

func (p *parser) take() *word {
	w := p.peek()
	if w.kind != end {
		p.at++
	}
	return w
}

// accept takes the next word if it is one of texts.
func (p *parser) accept(texts ...string) bool {
	if p.peek().is(texts...) {
		p.at++
		return true
	}
	return false
}

// parse reads the whole filter.
func (p *parser) parse() (node, error) {
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	if w := p.peek(); w.kind != end {
		return nil, p.unexpected(w, `must be "and" or "or"`)
	}
	return n, nil
}

// unexpected is the error for a word that does not belong there.
func (p *parser) unexpected(w *word, want string) error {
	if w.kind == name && slices.Contains(elsewhere, w.text) {
		return w.wrong("is not supported")
	}
	return w.wrong(want)
}

// expression reads terms. "and" and "or" bind alike, from left to right, as in libpcap.
func (p *parser) expression() (node, error) {
	n, err := p.term()
	for err == nil {
		and := p.accept("and", "&&")
		if !and && !p.accept("or", "||") {
			break
		}
		var next node
		if next, err = p.operand(); err == nil {
			n = joined(and, []node{n, next})
		}
	}
	return n, err
}

// operand reads a term, or a value that repeats the words of the term before.
func (p *parser) operand() (node, error) {
	at, last := p.at, p.last
	opposite := false
	for p.accept("not", "!") {
		opposite = !opposite
	}
	w := p.peek()
	if bare := w.kind == number || w.kind == mac || w.kind == ipv4 || w.kind == ipv6 || w.kind == name && !p.begins(w); bare && last.first.kind != end {
		if !p.compares(&p.list[p.at+1]) {
			n, err := p.id(last)
			if opposite && err == nil {
				n = negated(n)
			}
			return n, err
		}
	}
	p.at = at
	return p.term()
}

// begins reports whether a term can begin with a keyword.
func (p *parser) begins(w *word) bool {
	_, constant := constants[w.text]
	return constant || slices.Contains(protocols, w.text) || slices.Contains(whats, w.text) || slices.Contains(standalone, w.text) ||
		slices.Contains(elsewhere, w.text) || w.is("src", "dst", "len", "length", "not", "and", "or")
}

// term reads a condition.
func (p *parser) term() (node, error) {
	p.last = head{}
	if p.accept("not", "!") {
		n, err := p.deeper(p.term)
		if err != nil {
			return nil, err
		}
		return negated(n), nil
	}
	if p.isRelation() {
		return p.relation()
	}
	w := p.peek()
	switch {
	case p.accept("("):
		n, err := p.deeper(p.expression)
		if err == nil && !p.accept(")") {
			err = p.unexpected(p.peek(), `must be ")", "and" or "or"`)
		}
		p.last = head{} // libpcap would repeat the last one
		return n, err
	case w.is(standalone...):
		return p.alone()
	case w.is(protocols...), w.is(whats...), w.is("src", "dst"):
		return p.primitive()
	}
	return nil, p.unexpected(w, "must begin a condition, such as: host 10.0.0.1, tcp port 80, arp, ether[0] & 1 = 1; a value needs a word such as host in front")
}

// deeper reads something in parentheses or behind an operator.
func (p *parser) deeper(read func() (node, error)) (node, error) {
	if p.nested++; p.nested > maxNested {
		return nil, p.peek().wrong(fmt.Sprintf("is nested too deep: at most %d", maxNested))
	}
	defer func() { p.nested-- }()
	return read()
}

// primitive reads a head and its value, or a protocol alone.
func (p *parser) primitive() (node, error) {
	h := head{first: *p.peek()}
	if p.peek().is(protocols...) {
		h.protocol = p.take().text
		if h.protocol == "link" {
			h.protocol = "ether"
		}
		switch {
		case p.accept("broadcast"):
			return p.broadcast(h)
		case p.accept("multicast"):
			return p.multicast(h)
		}
	}
	h.direction = p.directions()
	if p.peek().is(whats...) {
		h.what = p.take().text
	} else if h.direction == "" {
		return p.abbreviation(h)
	}
	if p.accept("(") { // a list of values
		return p.values(h)
	}
	return p.id(h)
}

// directions reads src, dst, src or dst, src and dst.
func (p *parser) directions() string {
	for _, d := range [][2]string{{"src", "dst"}, {"dst", "src"}} {
		if !p.accept(d[0]) {
			continue
		}
		switch or := p.peek().is("or", "||"); {
		case !or && !p.peek().is("and", "&&"), !p.list[p.at+1].is(d[1]):
			return d[0]
		case or:
			p.at += 2
			return "src or dst"
		}
		p.at += 2
		return "src and dst"
	}
	return ""
}

// values reads values up to the closing parenthesis.
func (p *parser) values(h head) (node, error) {
	n, err := p.id(h)
	for err == nil && !p.accept(")") {
		and := p.accept("and", "&&")
		if !and && !p.accept("or", "||") {
			return nil, p.unexpected(p.peek(), `must be ")", "and" or "or"`)
		}
		var next node
		if next, err = p.id(h); err == nil {
			n = joined(and, []node{n, next})
		}
	}
	p.last = head{}
	return n, err
}
