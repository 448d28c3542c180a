package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting"
)

// A form is a file of a node, filled in by flags. The reader of the file checks the values.
type form struct {
	root  any
	given map[string]given // by key
}

// given is a flag with its value from the command line.
type given struct{ flag, value string }

// put sets v at keys such as segments[0].fdb[1].mac; nil deletes them. The flag is "" for implied settings.
func (f *form) put(flag, value string, v any, keys ...string) {
	for _, key := range keys {
		f.root = set(f.root, strings.FieldsFunc(key, func(r rune) bool { return strings.ContainsRune(".[]", r) }), v)
		if flag != "" {
			f.given[key] = given{flag, value}
		}
	}
}

// has reports whether a flag has set a key.
func (f *form) has(key string) bool {
	_, ok := f.given[key]
	return ok
}

// set returns an object or list with v at a path in it.
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

// read returns the node. Errors name the flag, the value and what is allowed.
func (f *form) read() (*node.Config, error) {
	text, err := json.Marshal(f.root)
	if err != nil {
		return nil, err
	}
	cfg, err := node.Parse(text)
	var errs setting.Errors
	if !errors.As(err, &errs) {
		return cfg, err
	}
	for _, e := range errs {
		for key := e.Path; key != ""; key = key[:max(0, strings.LastIndexAny(key, ".["))] {
			if g, ok := f.given[key]; ok {
				return nil, g.refused(e)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(f.given)) {
			if strings.HasPrefix(key, e.Path+".") || strings.HasPrefix(key, e.Path+"[") { // an object of one flag
				return nil, f.given[key].refused(e)
			}
		}
	}
	return nil, fmt.Errorf("%s: %s", errs[0].Path, errs[0].Reason())
}

// allowed describes the values of flags that differ from those in a file, where 0 may be the default and durations
// have a unit.
var allowed = map[string]string{
	"id": "0 to 16777215", "dstport": "1 to 65535", "srcport": "LO-HI, two ports from 1 to 65535, such as 49152-65535",
	"mark": "0 to 4294967295", "mtu": "68 to 65521", "queues": "1 to 256", "group-ttl": "1 to 255", "maxaddress": "1 or more",
	"ttl": "1 to 255, or inherit", "tos": "0 to 252 in steps of 4, or inherit",
	"ageing": "seconds such as 300, a duration such as 300s, or 0 for never", "busy-poll": "a duration from 0 to 1ms, such as 50us",
}

// refused returns the error of a setting as one of its flag.
func (g given) refused(e *setting.Error) error {
	x := setting.Error{Allowed: e.Allowed, Text: e.Text}
	if a := allowed[g.flag]; a != "" && e.Allowed != "" {
		x.Allowed = a
	} else if v := e.Shown(); e.Allowed == "" && v != g.value && v != strconv.Quote(g.value) {
		x.Value = e.Value // one of several
	}
	return g.wrong(x.Error())
}

// wrong returns an error about a flag.
func (g given) wrong(reason string) error {
	return fmt.Errorf("invalid value %q for flag -%s: %s", g.value, g.flag, reason)
}
