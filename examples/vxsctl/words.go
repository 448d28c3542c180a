package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

const objects = "fdb, neigh, route, vtep, port, drops, policy, flood, config, stats, reload, monitor, trace, capture, top, help"

// misused is what is wrong with a command line, and what is allowed.
type misused string

func (m misused) Error() string { return string(m) }

// words is a command line behind its flags.
type words struct {
	object string
	rest   []string
}

// verb takes the next word if it is one of those.
func (w *words) verb(allowed ...string) string {
	if len(w.rest) > 0 && slices.Contains(allowed, w.rest[0]) {
		v := w.rest[0]
		w.rest = w.rest[1:]
		return v
	}
	return ""
}

// keys takes all words that are left, as keys and their values.
func (w *words) keys(allowed ...string) (map[string]string, error) {
	m := map[string]string{}
	for i := 0; i < len(w.rest); i += 2 {
		k := w.rest[i]
		switch {
		case len(allowed) == 0:
			return nil, w.wrong("unexpected %q: no more is allowed", k)
		case !slices.Contains(allowed, k):
			return nil, w.wrong("unexpected %q: allowed are %s", k, strings.Join(allowed, ", "))
		case i+1 == len(w.rest):
			return nil, w.wrong("%s is without a value: allowed %s", k, values[k])
		case m[k] != "":
			return nil, w.wrong("%s is there twice", k)
		case !valid(k, w.rest[i+1]):
			return nil, w.wrong("%s %q: allowed %s", k, w.rest[i+1], values[k])
		}
		m[k] = w.rest[i+1]
	}
	return m, nil
}

func (w *words) wrong(format string, args ...any) error {
	return misused(w.object + ": " + fmt.Sprintf(format, args...))
}

// values is what is allowed behind a key.
var values = map[string]string{
	"vni": "is a number from 0 to 16777215", "dev": "is the name of a port", "vrf": "is the name of a VRF",
	"dst": "is the address of a peer, such as 10.0.0.2", "mac": "is an address such as 02:00:00:00:00:01",
	"every": "is a number from 1", "dest": "is the name of a port or tunnel, or the address of a peer",
	"-interval": "is a duration of at least 100ms, such as 1s",
}

// valid reports whether a value is of the kind that its key wants.
func valid(key, v string) bool {
	var err error
	switch key {
	case "vni":
		_, err = strconv.ParseUint(v, 10, 24)
	case "dst":
		_, err = netip.ParseAddr(v)
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
