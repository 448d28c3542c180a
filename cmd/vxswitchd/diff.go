package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
)

// keys are the settings that tell the elements of a list apart, in the order of preference.
var keys = []string{"name", "vni", "port", "tunnel", "prefix", "ip", "mac"}

// differences returns what a change from old to next does to the effective settings.
func differences(old, next *file.Config) []api.Difference {
	d := differ{list: []api.Difference{}}
	was, _ := treeOf(effective(old)) // of what was written: cannot fail
	is, _ := treeOf(effective(next))
	d.value("", was, is)
	return d.list
}

type differ struct{ list []api.Difference }

func (d *differ) add(op, path string, old, next any) {
	x := api.Difference{Op: op, Path: path}
	if old != nil {
		x.Old, _ = json.Marshal(old)
	}
	if next != nil {
		x.New, _ = json.Marshal(next)
	}
	d.list = append(d.list, x)
}

func (d *differ) value(path string, old, next any) {
	if reflect.DeepEqual(old, next) {
		return
	}
	switch {
	case old == nil:
		d.add("add", path, nil, next)
		return
	case next == nil:
		d.add("del", path, old, nil)
		return
	}
	switch was := old.(type) {
	case map[string]any:
		if is, ok := next.(map[string]any); ok {
			d.object(path, was, is)
			return
		}
	case []any:
		if is, ok := next.([]any); ok && d.elements(path, was, is) {
			return
		}
	}
	d.add("change", path, old, next)
}

func (d *differ) object(path string, old, next map[string]any) {
	if path != "" {
		path += "."
	}
	all := maps.Clone(old)
	maps.Copy(all, next)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		d.value(path+k, old[k], next[k])
	}
}

// elements compares lists whose elements have a key. It returns false if they have none.
func (d *differ) elements(path string, old, next []any) bool {
	key := ""
	for _, k := range keys {
		if distinct(old, k) && distinct(next, k) {
			key = k
			break
		}
	}
	if key == "" {
		return false
	}
	was, is := byKey(old, key), byKey(next, key)
	var stays, order []any
	for _, x := range old {
		k := x.(map[string]any)[key]
		if _, ok := is[k]; ok {
			stays = append(stays, k)
		}
		d.value(path+element(key, k), x, is[k])
	}
	for _, x := range next {
		k := x.(map[string]any)[key]
		if _, ok := was[k]; ok {
			order = append(order, k)
		} else {
			d.value(path+element(key, k), nil, x)
		}
	}
	if !reflect.DeepEqual(stays, order) {
		d.add("change", path+" (order)", stays, order)
	}
	return true
}

// element calls an element by its key. A number has the name of the key, since it is no index.
func element(key string, k any) string {
	if _, ok := k.(json.Number); ok {
		return fmt.Sprintf("[%s %v]", key, k)
	}
	return fmt.Sprintf("[%v]", k)
}

// distinct reports whether all elements of a list have different values of a key.
func distinct(list []any, key string) bool {
	return len(byKey(list, key)) == len(list)
}

func byKey(list []any, key string) map[any]any {
	m := make(map[any]any, len(list))
	for _, x := range list {
		o, _ := x.(map[string]any)
		switch k := o[key].(type) {
		case string, json.Number:
			m[k] = x
		}
	}
	return m
}
