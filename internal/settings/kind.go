package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// named is what is written for types that read their values themselves, other than enums: what
// is explained before all tables, or examples.
var named = map[reflect.Type]string{
	reflect.TypeFor[netip.Addr]():         "IP",
	reflect.TypeFor[netip.Prefix]():       "prefix",
	reflect.TypeFor[time.Duration]():      "duration",
	reflect.TypeFor[frame.MAC]():          "MAC",
	reflect.TypeFor[underlay.PortRange](): "`\"49152-65535\"`",
	reflect.TypeFor[policy.PortRange]():   "`\"80\"`, `\"8000-8100\"`",
	reflect.TypeFor[policy.ICMPType]():    "`\"3\"`, `\"3/4\"`",
	reflect.TypeFor[vswitch.Class]():      "list of `\"broadcast\"`, `\"multicast\"`, `\"unknown\"`",
	reflect.TypeFor[vtep.Value]():         "number, `\"inherit\"`, `\"none\"`",
	reflect.TypeFor[vtep.Reserved]():      "`\"rfc\"`, `\"strict\"`, mask such as `\"0x0400000000000000\"`",
}

// kind returns what is written for a value of a type; plural is "s" for several.
func (w *writer) kind(t reflect.Type, plural string) string {
	words := wordsOf(t)
	switch text := named[t]; {
	case strings.HasPrefix(text, "prefix"):
		return text + strings.Replace(plural, "s", "es", 1)
	case strings.HasSuffix(text, "`"):
		return text
	case text != "":
		return text + plural
	case len(words) > 0:
		var list []string
		for _, c := range words {
			list = append(list, "`\""+c.text+"\"`")
		}
		return strings.Join(list, ", ")
	case reads(t):
		w.fail("%v: how is it written?", t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.kind(t.Elem(), plural)
	case reflect.Slice:
		return "list of " + w.kind(t.Elem(), "s")
	case reflect.Map:
		return "object: names, each with a " + w.kind(t.Elem(), plural)
	case reflect.Struct:
		return "[object" + plural + "](" + w.anchor(t) + ")"
	case reflect.String:
		return "text" + plural
	case reflect.Bool:
		return "bool" + plural
	}
	return "number" + plural
}

// kindOf returns what is written for a value of a field. Of the words beside a number it has those
// that are said of it.
func (w *writer) kindOf(f reflect.StructField, about string) string {
	kind := w.kind(f.Type, "")
	if f.Type != reflect.TypeFor[vtep.Value]() {
		return kind
	}
	list := strings.Split(kind, ", ")
	return strings.Join(slices.DeleteFunc(list, func(word string) bool {
		return strings.HasPrefix(word, "`") && !strings.Contains(about, word)
	}), ", ")
}

// isObject reports whether a value has keys.
func isObject(t reflect.Type) bool { return t.Kind() == reflect.Struct && named[t] == "" && !reads(t) }

// reads reports whether a type reads its values itself.
func reads(t reflect.Type) bool {
	switch reflect.New(t).Interface().(type) {
	case encoding.TextUnmarshaler, json.Unmarshaler:
		return true
	}
	return false
}

// A word stands for a value of an enum.
type word struct {
	text  string
	value int
}

// wordsOf returns those of a type, none of one that is no enum.
func wordsOf(t reflect.Type) (list []word) {
	reason := t == reflect.TypeFor[frame.Reason]()
	v := reflect.New(t)
	if _, text := v.Interface().(encoding.TextUnmarshaler); t.Kind() != reflect.Uint8 || !text && !reason {
		return nil
	}
	for i := range 256 {
		v.Elem().SetUint(uint64(i))
		s := fmt.Sprint(v.Elem().Interface())
		if s == "invalid" || reason && i == int(frame.NumReasons) {
			break
		}
		list = append(list, word{s, i})
	}
	return list
}
