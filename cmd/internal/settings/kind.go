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

	"github.com/vxswitch/vxswitch/evpn"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A form is how values are written: in words, what is explained before all tables, or examples; and as a schema, which accepts all
// that the type reads. Where empty text stands for a key that is not there, it accepts that.
type form struct {
	text   string
	schema schema
}

// forms has those of types that read their values themselves, other than enums.
var forms = map[reflect.Type]form{
	reflect.TypeFor[netip.Addr]():         {"IP", text(`^([0-9A-Fa-f:.]+(%.+)?)?$`)},
	reflect.TypeFor[netip.AddrPort]():     {"`\"10.0.0.1:179\"`", text(`^([0-9A-Fa-f:.%\[\]]+:[0-9]{1,5})?$`)},
	reflect.TypeFor[netip.Prefix]():       {"prefix", text(`^([0-9A-Fa-f:.]+/[0-9]{1,3})?$`)},
	reflect.TypeFor[time.Duration]():      {"duration", text(`^[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$|^[-+]?0$`)},
	reflect.TypeFor[frame.MAC]():          {"MAC", text(`^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$|^[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4}){2}$`)},
	reflect.TypeFor[policy.MACPrefix]():   {"MAC, `\"00:00:5e:00:00:00/24\"`", text(`^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}(/[0-9]+)?$|^[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4}){2}(/[0-9]+)?$`)},
	reflect.TypeFor[underlay.PortRange](): {"`\"49152-65535\"`", text(`^[0-9]{1,5}-[0-9]{1,5}$`)},
	reflect.TypeFor[policy.PortRange]():   {"`\"80\"`, `\"8000-8100\"`", text(`^[0-9]+(-[0-9]+)?$`)},
	reflect.TypeFor[policy.Endpoint]():    {"`\"10.0.0.1,tcp:80\"`, `\"fd00::1,132:80\"`", text(`^[0-9A-Fa-f:.]+,[a-z0-9]+:[0-9]{1,5}$`)},
	reflect.TypeFor[policy.ICMPType]():    {"`\"3\"`, `\"3/4\"`", text(`^[0-9]+(/[0-9]+)?$`)},
	reflect.TypeFor[vswitch.Class](): {"list of `\"broadcast\"`, `\"multicast\"`, `\"unknown\"`",
		schema{"type": "array", "items": schema{"enum": []string{"broadcast", "multicast", "unknown"}}}},
	reflect.TypeFor[evpn.RemoteAS](): {"number, `\"external\"`, `\"internal\"`", schema{"anyOf": []schema{{"type": "integer"}, {"enum": []string{"external", "internal"}}}}},
	reflect.TypeFor[vtep.Value]():    {"number, `\"inherit\"`, `\"none\"`, `\"priority\"`", nil}, // as its field says
	reflect.TypeFor[vtep.Reserved](): {"`\"rfc\"`, `\"strict\"`, mask such as `\"0x0400000000000000\"`", text(`^rfc$|^strict$|^[0-9]`)},
}

// kind returns what is written for a value of a type; plural is "s" for several.
func (w *writer) kind(t reflect.Type, plural string) string {
	words := wordsOf(t)
	switch text := forms[t].text; {
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
func isObject(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && forms[t].text == "" && !reads(t)
}

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
