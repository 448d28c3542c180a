package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/frame"
)

// Parse reads a value: a *Pool, *Node, *Configuration, *Peer, *Filter, *Block or *Affinity; of policy a *Tier, *Policy, *Profile, *Set,
// *Endpoint, *Felix or *Staged. An error names the field.
func Parse(k Key, value []byte) (any, error) {
	if most := kinds[k.Kind].size; len(value) > most {
		return nil, fmt.Errorf("%d bytes; must be at most %d", len(value), most)
	}
	switch k.Kind {
	case KindPool:
		return parse(value, (*rawPool).read)
	case KindNode:
		return parse(value, (*rawNode).read)
	case KindConfiguration:
		return parse(value, (*rawConfiguration).read)
	case KindPeer:
		return parse(value, (*rawPeer).read)
	case KindFilter:
		return parse(value, (*rawFilter).read)
	case KindBlock:
		return parse(value, func(r *rawBlock) (*Block, error) { return r.read(netip.MustParsePrefix(k.Name)) })
	case KindAffinity:
		if len(value) == 0 { // as it was written long ago
			value = []byte("{}")
		}
		return parse(value, (*Affinity).read)
	}
	return parsePolicy(k, value)
}

// parsePolicy reads a value that is about policy.
func parsePolicy(k Key, value []byte) (any, error) {
	namespace, name := k.Split()
	switch k.Kind {
	case KindTier:
		return parse(value, (*rawTier).read)
	case KindGlobalPolicy, KindPolicy:
		return parse(value, func(r *rawPolicy) (*Policy, error) { return r.read(namespace) })
	case KindProfile:
		return parse(value, (*rawProfile).read)
	case KindGlobalSet, KindSet:
		return parse(value, func(r *rawSet) (*Set, error) { return r.read(namespace) })
	case KindWorkload:
		return parse(value, func(r *rawWorkload) (*Endpoint, error) { return r.read(namespace, name) })
	case KindHost:
		return parse(value, (*rawHost).read)
	case KindFelix:
		return parse(value, (*rawFelix).read)
	case KindStagedGlobalPolicy, KindStagedPolicy, KindStagedKubernetesPolicy:
		return new(Staged), nil
	}
	return nil, errors.New("is of no kind that is read")
}

// parse decodes JSON into R, and reads that.
func parse[R, T any](value []byte, read func(*R) (T, error)) (any, error) {
	var r R
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, readable(err)
	}
	x, err := read(&r)
	if err != nil {
		return nil, err
	}
	return x, nil
}

// wrong returns an error of a field.
func wrong(field string, value any, format string, args ...any) error {
	v := fmt.Sprint(value)
	if len(v) > 100 {
		v = v[:100] + "..."
	}
	return fmt.Errorf("%s %q: %s", field, v, fmt.Sprintf(format, args...))
}

// readAS reads an AS number, which is a number, or a text with one or with its two halves ("1.10").
func readAS(field string, raw json.RawMessage, to *uint32) error {
	text := strings.Trim(string(raw), `"`)
	if !given(raw) {
		return nil
	}
	high, low, halves := strings.Cut(text, ".")
	if !halves || raw[0] != '"' { // as a number 1.10 is 1.1
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return wrong(field, text, "must be 1 to 4294967295")
		}
		*to = uint32(n)
		return nil
	}
	h, err1 := strconv.ParseUint(high, 10, 16)
	l, err2 := strconv.ParseUint(low, 10, 16)
	if err1 != nil || err2 != nil {
		return wrong(field, text, "must be two numbers up to 65535")
	}
	*to = uint32(h<<16 | l)
	return nil
}

// addr reads an address of a host, none if there is no text.
func addr(field, text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Is4In6() || a.Zone() != "" {
		return netip.Addr{}, wrong(field, text, "must be an IPv4 or IPv6 address")
	}
	return a, nil
}

// family is addr for one family.
func family(field, text string, is4 bool) (netip.Addr, error) {
	a, err := addr(field, text)
	if err == nil && a.IsValid() && a.Is4() != is4 {
		err = wrong(field, text, "must be an %s address", familyName(is4))
	}
	return a, err
}

func familyName(is4 bool) string {
	if is4 {
		return "IPv4"
	}
	return "IPv6"
}

// prefix reads one without host bits.
func prefix(field, text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() || p != p.Masked() {
		return netip.Prefix{}, wrong(field, text, "must be a prefix such as 10.65.0.0/16")
	}
	return p, nil
}

// choose reads a selector, nil if there is no text.
func choose(field, text string) (*selector.Selector, error) {
	if text == "" {
		return nil, nil
	}
	s, err := selector.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return s, nil
}

// mac reads the MAC of a host, none if there is no text.
func mac(field, text string) (m frame.MAC, err error) {
	if text == "" {
		return m, nil
	}
	if err := m.UnmarshalText([]byte(text)); err != nil || m.IsZero() || m.IsGroup() {
		return frame.MAC{}, wrong(field, text, "must be the MAC of one host")
	}
	return m, nil
}

// one returns an error if a word is none of a list.
func one(field, word string, list ...string) error {
	if slices.Contains(list, word) {
		return nil
	}
	return wrong(field, word, "must be one of %s", strings.Join(list, ", "))
}

// oneOrNone is one for a word that may be missing.
func oneOrNone(field, word string, list ...string) error {
	if word == "" {
		return nil
	}
	return one(field, word, list...)
}
