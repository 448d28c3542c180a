package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// A form is a node's file that is filled in flag by flag. What is wrong with a value is for the
// file's reader to say.
type form struct {
	root  any
	given map[string]given // by key
}

// given is a flag and its value, as it was given.
type given struct{ flag, value string }

// put writes v at keys such as segments[0].fdb[1].mac, or with nil takes away what is there; flag
// is where it came from, "" for none.
func (f *form) put(flag, value string, v any, keys ...string) {
	for _, key := range keys {
		f.root = set(f.root, strings.FieldsFunc(key, func(r rune) bool { return strings.ContainsRune(".[]", r) }), v)
		if flag != "" {
			f.given[key] = given{flag, value}
		}
	}
}

// has reports whether a flag has filled in a key, be it with nothing.
func (f *form) has(key string) bool {
	_, ok := f.given[key]
	return ok
}

// set returns in, an object or a list, with v at a place in it.
func set(in any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	if i, err := strconv.Atoi(path[0]); err == nil {
		list, _ := in.([]any)
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = set(list[i], path[1:], v)
		return list
	}
	object, _ := in.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	if object[path[0]] = set(object[path[0]], path[1:], v); object[path[0]] == nil {
		delete(object, path[0])
	}
	return object
}

// read returns the node. The error names the flag, what was given and what is allowed.
func (f *form) read() (*node.Config, error) {
	text, err := json.Marshal(f.root)
	if err != nil {
		return nil, err
	}
	cfg, err := node.Parse(text)
	var errs conf.Errors
	if !errors.As(err, &errs) {
		return cfg, err
	}
	for _, e := range errs {
		for key := e.Key; key != ""; key = key[:max(0, strings.LastIndexAny(key, ".["))] {
			if g, ok := f.given[key]; ok {
				return nil, g.wrong(e.Text)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(f.given)) {
			if strings.HasPrefix(key, e.Key+".") || strings.HasPrefix(key, e.Key+"[") { // it is about a part of which the flag has written all
				return nil, f.given[key].wrong(e.Text)
			}
		}
	}
	return nil, fmt.Errorf("%s: %s", errs[0].Key, errs[0].Text)
}

// allowed is what flags take whose values a file has in other words: there, 0 may be the default,
// and a duration has a unit.
var allowed = map[string]string{
	"id": "0 to 16777215", "dstport": "1 to 65535", "srcport": "LO-HI, two ports from 1 to 65535, such as 49152-65535",
	"mark": "0 to 4294967295", "mtu": "68 to 65521", "queues": "1 to 256", "group-ttl": "1 to 255", "maxaddress": "numbers from 1",
	"ttl": "1 to 255, and inherit", "tos": "0 to 252 in steps of 4, and inherit",
	"ageing": "seconds such as 300, durations such as 300s, and 0 for never", "busy-poll": "durations from 0 to 1ms, such as 50us",
}

// kind matches a text that says no more than what is allowed.
var kind = regexp.MustCompile(`^(allowed are [^:]*|wanted is .*|is not a range of ports)$`)

// filed is a value as the file had it, before what is allowed.
var filed = regexp.MustCompile(`^(".*"|[0-9]+|a string|a number); (wanted|allowed) `)

// wrong returns an error about a flag. A text that begins with the value has it once.
func (g given) wrong(text string) error {
	for _, value := range []string{strconv.Quote(g.value), g.value} {
		if rest, ok := strings.CutPrefix(text, value); ok && rest != "" && strings.ContainsRune(",; :", rune(rest[0])) {
			text = strings.TrimLeft(rest, ",; :")
			break
		}
	}
	text = filed.ReplaceAllString(text, "$2 ")
	if a := allowed[g.flag]; a != "" && kind.MatchString(text) {
		text = "allowed are " + a
	}
	return fmt.Errorf("invalid value %q for flag -%s: %s", g.value, g.flag, text)
}
