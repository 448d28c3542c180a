package main

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/frame"
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
			w.to.value(k)
			return nil, errOffered
		case i+1 == len(w.rest):
			return nil, w.wrong("%s: value is missing, must be %s", k, values[k])
		case m[k] != "":
			return nil, w.wrong("%s: duplicate", k)
		case !valid(k, w.rest[i+1]):
			return nil, w.wrong("%s %q: must be %s", k, w.rest[i+1], values[k])
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

// values describes the values of keys.
var values = map[string]string{
	"vni": "0 to 16777215", "dev": "the name of a port", "vrf": "the name of a VRF",
	"tunnel": "the name of a tunnel of the segment",
	"proto":  "config, vxsctl or the name of a control plane",
	"dst":    "the address of a peer such as 10.0.0.2", "mac": "a MAC such as 02:00:00:00:00:01",
	"every": "1 or more", "dest": "the name of a port or tunnel, or the address of a peer",
	"lladdr": "the MAC of one host such as 02:00:00:00:00:01", "via": "the address of a host such as 192.168.7.2",
	"weight": "1 to 255", "metric": "0 to 255",
	"type": "tap, tun, veth, interface or packet", "mtu": "a number of bytes", "queues": "a number, 1 or more", "vlan": "1 to 4094",
	"-interval": "a duration of at least 100ms such as 1s",

	"capture port": "the name of a port; a filter that begins with port comes after --", "capture tunnel": "the name of a tunnel",
	"capture vni": "0 to 16777215", "capture -w": "a file name, or - for standard output",
	"capture -c": "a number of packets, 1 or more", "capture -s": "a number of bytes, 1 to 262144, or 0 for all",
}

// valid reports whether a value is allowed for a key.
func valid(key, v string) bool {
	var err error
	switch key {
	case "vni":
		_, err = strconv.ParseUint(v, 10, 24)
	case "weight":
		n, e := strconv.ParseUint(v, 10, 8)
		return e == nil && n > 0
	case "metric":
		_, err = strconv.ParseUint(v, 10, 8)
	case "mtu", "queues":
		n, e := strconv.ParseUint(v, 10, 31)
		return e == nil && n > 0
	case "vlan":
		n, e := strconv.Atoi(v)
		return e == nil && n >= 1 && n <= 4094
	case "type":
		return slices.Contains([]string{"tap", "tun", "veth", "interface", "packet"}, v)
	case "dst", "via":
		_, err = netip.ParseAddr(v)
	case "lladdr":
		m, e := frame.ParseMAC(v)
		return e == nil && !m.IsGroup() && !m.IsZero()
	case "mac":
		_, err = frame.ParseMAC(v)
	case "every":
		n, e := strconv.Atoi(v)
		return e == nil && n > 0
	case "-interval":
		d, e := time.ParseDuration(v)
		return e == nil && d >= 100*time.Millisecond
	default:
		return v != ""
	}
	return err == nil
}

func isMAC(s string) bool {
	m, err := net.ParseMAC(s)
	return err == nil && len(m) == 6
}
