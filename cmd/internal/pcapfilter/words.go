package pcapfilter

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// A kind of word.
type kind uint8

const (
	end     kind = iota // of the filter
	name                // a keyword or something else
	escaped             // a name after a backslash
	number
	mac
	ipv4 // with 2 to 4 parts
	ipv6
	sign
)

// A word is a part of a filter.
type word struct {
	kind   kind
	text   string // as it was written, without a backslash
	column int
	value  uint32     // of a number
	mac    [6]byte    // of a MAC
	addr   netip.Addr // of IPv6, or the bytes of ipv4 that there are
	parts  int        // of ipv4
}

// The scanner of libpcap takes the longest of these, so that "len-4" is one word.
var (
	macForm  = regexp.MustCompile(`^[0-9A-Fa-f]{1,2}(:[0-9A-Fa-f]{1,2}){5}`)
	ip6Form  = regexp.MustCompile(`^[0-9A-Fa-f:]*:[0-9A-Fa-f:]*([0-9.]+)?`)
	nameForm = regexp.MustCompile(`^\\?[A-Za-z0-9]([-_.A-Za-z0-9]*[.A-Za-z0-9])?`)
	hostForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+){1,3}$`)
	signForm = regexp.MustCompile(`^(<<|>>|<=|>=|!=|==|&&|\|\||[-+*/%&|^<>=!()\[\]:])`)
)

// words divides a filter. The last word is the end.
func words(text string) (list []word, err error) {
	for at := 0; ; {
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\r\n"))
		if at == len(text) {
			return append(list, word{column: at + 1}), nil
		}
		w, n, err := first(text[at:], at+1)
		if err != nil {
			return nil, err
		}
		list, at = append(list, w), at+n
	}
}

// first returns the word at the start of text, and how long it is.
func first(text string, column int) (word, int, error) {
	w := word{column: column}
	if m := macForm.FindString(text); m != "" && !strings.HasPrefix(text[len(m):], ":") {
		w.kind, w.text = mac, m
		for i, part := range strings.Split(m, ":") {
			n, _ := strconv.ParseUint(part, 16, 8)
			w.mac[i] = byte(n)
		}
		return w, len(m), nil
	}
	if m := ip6Form.FindString(text); m != "" {
		if a, err := netip.ParseAddr(m); err == nil && a.Is6() {
			w.kind, w.text, w.addr = ipv6, m, a
			return w, len(m), nil
		}
	}
	if m := nameForm.FindString(text); m != "" {
		w.kind, w.text = name, m
		if m[0] == '\\' {
			w.kind, w.text = escaped, m[1:]
			return w, len(m), nil
		}
		return w, len(m), w.digits()
	}
	if m := signForm.FindString(text); m != "" {
		w.kind, w.text = sign, m
		return w, len(m), nil
	}
	w.text = string([]rune(text)[:1])
	return w, 0, w.wrong("must be a word, a number, an address or an operator")
}

// digits reads a number or an IPv4 address.
func (w *word) digits() error {
	if c := w.text[0]; c < '0' || c > '9' {
		return nil
	}
	if hostForm.MatchString(w.text) {
		var b [4]byte
		parts := strings.Split(w.text, ".")
		for i, p := range parts {
			n, err := strconv.ParseUint(p, 10, 8)
			if err != nil || len(p) > 1 && p[0] == '0' {
				return w.wrong("the parts of an IPv4 address must be 0 to 255, without leading zeros")
			}
			b[i] = byte(n)
		}
		w.kind, w.addr, w.parts = ipv4, netip.AddrFrom4(b), len(parts)
		return nil
	}
	digits, base := w.text, 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	}
	if strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return nil // for instance a range
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return w.wrong("must be a number of at most 32 bits")
	}
	w.kind, w.value = number, uint32(n)
	return nil
}

func (w *word) wrong(text string) error { return &Error{Column: w.column, Word: w.text, Text: text} }

// is reports whether w is one of the keywords or signs.
func (w *word) is(texts ...string) bool {
	if w.kind != name && w.kind != sign {
		return false
	}
	for _, t := range texts {
		if w.text == t {
			return true
		}
	}
	return false
}
