package main

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// misused is an error in the command line.
type misused string

func (m misused) Error() string { return string(m) }

// words is a command line without its flags.
type words struct {
	*command
	op   string // show, or one of those of the command
	rest []string

	flags []string // keys without a value

	to *offers // what may come in place of the last word, if it is being written
}

// verb takes the next word if it is allowed.
func (w *words) verb(allowed ...string) string {
	if w.last() {
		w.to.add(allowed...)
		return ""
	}
	if len(w.rest) > 0 && slices.Contains(allowed, w.rest[0]) {
		v := w.rest[0]
		w.rest = w.rest[1:]
		return v
	}
	return ""
}

// operation takes the operation of a command: show, which may be left out before its keys, or one of ops.
func (w *words) operation() error {
	ops, last := append([]string{"show"}, w.ops...), w.last()
	w.op = w.verb(ops...)
	if last {
		w.to.add(w.command.keys...)
		return errOffered
	}
	if w.op == "" && len(w.ops) > 0 && len(w.rest) > 0 && !slices.Contains(w.command.keys, w.rest[0]) {
		return w.not(ops...)
	}
	w.op = cmp.Or(w.op, "show")
	return nil
}

// next takes the next word, "" if there is none.
func (w *words) next() (word string) {
	if len(w.rest) > 0 {
		word, w.rest = w.rest[0], w.rest[1:]
	}
	return word
}

// not is the error that the next word is none of those allowed.
func (w *words) not(allowed ...string) error {
	if err := w.misplaced(w.rest[0]); err != nil {
		return err
	}
	return w.wrong("%q: must be one of %s", w.rest[0], strings.Join(allowed, ", "))
}

// misplaced returns an error if a word is an option of vxsctl.
func (w *words) misplaced(word string) error {
	if name := strings.TrimLeft(word, "-"); name != word && newFlags().Lookup(name) != nil {
		if name == "socket" {
			word += " PATH"
		}
		return w.wrong("%s: comes before the command, as in vxsctl %[1]s %s", word, w.name)
	}
	return nil
}

// flag takes a key without a value, and reports whether it is there.
func (w *words) flag(key string) bool {
	w.flags = append(w.flags, key)
	if w.to != nil && len(w.rest)%2 == 1 {
		w.to.add(key)
	}
	for i := 0; i < len(w.rest); i += 2 {
		if w.rest[i] == key {
			w.rest = slices.Concat(w.rest[:i], w.rest[i+1:])
			return true
		}
	}
	return false
}

// keys takes the remaining words as keys with values.
func (w *words) keys(allowed ...string) (map[string]string, error) {
	m := map[string]string{}
	for i := 0; i < len(w.rest); i += 2 {
		k, last := w.rest[i], len(w.rest)-1
		switch {
		case w.to != nil && i == last:
			w.to.add(slices.DeleteFunc(slices.Clone(allowed), func(k string) bool { return m[k] != "" })...)
			return nil, errOffered
		case !slices.Contains(allowed, k):
			return nil, w.unexpected(k, slices.Concat(allowed, w.flags))
		case w.to != nil && i+1 == last:
			w.to.value(w.value(k))
			return nil, errOffered
		case i+1 == len(w.rest):
			return nil, w.wrong("%s: value is missing, must be %s", k, w.value(k).text)
		case m[k] != "":
			return nil, w.wrong("%s: duplicate", k)
		}
		if err := w.check(k, w.rest[i+1]); err != nil {
			return nil, err
		}
		m[k] = w.rest[i+1]
	}
	if w.to != nil {
		return nil, errOffered
	}
	return m, nil
}

// required is the error that the first word of an operation is missing or wrong.
func (w *words) required(op, word, what string) error {
	if word == "" {
		return w.wrong("%s: requires %s", op, what)
	}
	return w.wrong("%s: %q: must be %s", op, word, what)
}

// unexpected is the error that a word is none of the keys allowed.
func (w *words) unexpected(word string, allowed []string) error {
	if err := w.misplaced(word); err != nil {
		return err
	}
	switch len(allowed) {
	case 0:
		return w.wrong("unexpected argument %q", word)
	case 1:
		return w.wrong("unexpected %q; allowed is %s", word, allowed[0])
	}
	return w.wrong("unexpected %q; allowed are %s", word, strings.Join(allowed, ", "))
}

func (w *words) wrong(format string, args ...any) error {
	return misused(w.name + ": " + fmt.Sprintf(format, args...))
}

// A value is what may follow a key.
type value struct {
	text  string            // what it must be
	valid func(string) bool // nil: not empty
	offer func(*offers)     // offers those that there are
}

// values has those of keys, and of keys of an operation, an object or both, where they differ.
var values = map[string]value{
	"vni":       {"0 to 16777215", number(0, uint64(frame.MaxVNI)), names("segments")},
	"dev":       {"the name of a port", nil, names("ports")},
	"show dev":  {"the name of a port or tunnel", nil, names("ports", "tunnels")},
	"vrf":       {"the name of a VRF", nil, names("vrfs")},
	"tunnel":    {"the name of a tunnel of the segment", nil, names("tunnels")},
	"proto":     {"config, vxsctl or the name of a control plane", nil, (*offers).protos},
	"dst":       {"the address of a peer such as 10.0.0.2", parses(netip.ParseAddr), nil},
	"via":       {"the address of a host such as 192.168.7.2", parses(netip.ParseAddr), nil},
	"mac":       {"a MAC such as 02:00:00:00:00:01", parses(frame.ParseMAC), nil},
	"lladdr":    {"the MAC of one host such as 02:00:00:00:00:01", isHostMAC, nil},
	"every":     {"1 or more", number(1, math.MaxInt32), nil},
	"dest":      {"the name of a port or tunnel, or the address of a peer", nil, names("ports", "tunnels")},
	"weight":    {"1 to 255", number(1, 255), nil},
	"metric":    {"0 to 255", number(0, 255), nil},
	"type":      {setting.Or(api.PortTypes...), func(v string) bool { return slices.Contains(api.PortTypes, v) }, func(o *offers) { o.add(api.PortTypes...) }},
	"mtu":       {"a number of bytes", number(1, math.MaxInt32), nil},
	"queues":    {"a number, 1 or more", number(1, math.MaxInt32), nil},
	"vlan":      {"1 to 4094", number(1, 4094), nil},
	"service":   {"the VLAN of a service tag, 1 to 4094", number(1, 4094), nil},
	"namespace": {"the path of a network namespace, or a name in /run/netns", nil, func(o *offers) { o.file = true }},
	"owner":     {"the name of the program that has made the device", nil, nil},
	"-interval": {"a duration of at least 100ms such as 1s", isInterval, nil},

	"routes type":     {"1 to 5", number(1, 5), nil},
	"peer":            {"the address of a peer such as 10.0.0.2", parses(netip.ParseAddr), (*offers).evpnSpeakers},
	"bgp routes peer": {"the address of a peer such as 10.0.0.2", parses(netip.ParseAddr), (*offers).bgpSpeakers},

	"capture port":   {"the name of a port; a filter that begins with port comes after --", nil, names("ports")},
	"capture tunnel": {"the name of a tunnel", nil, names("tunnels")},
	"-w":             {"a file name, or - for standard output", nil, func(o *offers) { o.file = true }},
	"-c":             {"a number of packets, 1 or more", number(1, math.MaxInt32), nil},
	"-s":             {"a number of bytes, 1 to 262144, or 0 for all", number(0, 262144), nil},
}

// value returns what may follow a key.
func (w *words) value(key string) value {
	for _, of := range []string{w.name + " " + w.op, cmp.Or(w.op, w.name)} {
		if v, ok := values[of+" "+key]; ok {
			return v
		}
	}
	return values[key]
}

// check returns an error if a value is not allowed for a key.
func (w *words) check(key, v string) error {
	if x := w.value(key); v == "" || x.valid != nil && !x.valid(v) {
		return w.wrong("%s %q: must be %s", key, v, x.text)
	}
	return nil
}

// names offers the names of lists.
func names(lists ...string) func(*offers) { return func(o *offers) { o.names(lists...) } }

// number accepts a number of a range.
func number(least, most uint64) func(string) bool {
	return func(v string) bool {
		n, err := strconv.ParseUint(v, 10, 32)
		return err == nil && n >= least && n <= most
	}
}

// parses accepts what a function does.
func parses[T any](parse func(string) (T, error)) func(string) bool {
	return func(v string) bool {
		_, err := parse(v)
		return err == nil
	}
}

func isInterval(v string) bool {
	d, err := time.ParseDuration(v)
	return err == nil && d >= 100*time.Millisecond
}

func isHostMAC(v string) bool {
	m, err := frame.ParseMAC(v)
	return err == nil && !m.IsGroup() && !m.IsZero()
}
