package main

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting/conf"
	"github.com/vxswitch/vxswitch/vtep"
)

// A schema is a JSON schema, or part of one.
type schema map[string]any

// text is the schema of strings that match a pattern.
func text(pattern string) schema { return schema{"type": "string", "pattern": pattern} }

// schemaOf returns the JSON schema of a file, of the repository at root.
func schemaOf(root string) ([]byte, error) {
	w := newWriter(root)
	defs := schema{}
	for _, t := range w.order[1:] {
		o := w.object(t)
		o["title"] = strings.Trim(w.title(t), "`")
		defs[w.anchor(t)[1:]] = o
	}
	file := w.object(w.order[0])
	file["properties"].(schema)["$schema"] = schema{"type": "string", "description": "This schema, for editors; the node ignores it."}
	for k, v := range (schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of vxswitchd", "$defs": defs,
		"$comment": `Written by "go generate ./cmd/internal/file" from the comments of the Go source: change those.`,
	}) {
		file[k] = v
	}
	b, err := json.MarshalIndent(file, "", " ")
	if err == nil {
		err = w.err
	}
	return append(b, '\n'), err
}

// object returns the schema of an object.
func (w *writer) object(t reflect.Type) schema {
	keys, needed := schema{}, []string{}
	for _, f := range conf.Fields(t) {
		about := w.about(t, f.StructField)
		s := schema{}
		for k, v := range w.value(f.Type) {
			s[k] = v
		}
		if f.Type == reflect.TypeFor[vtep.Value]() {
			words := slices.DeleteFunc([]string{"inherit", "none", "priority"}, func(word string) bool { return !strings.Contains(about, `"`+word+`"`) })
			s = schema{"anyOf": []schema{{"type": "integer"}, {"enum": words}}}
		}
		s["description"] = strings.NewReplacer("<br>", "\n", "`", "", "*", "").Replace(about)
		keys[f.Key] = s
		if strings.HasPrefix(about, "Needed") {
			needed = append(needed, f.Key)
		}
	}
	s := schema{"type": "object", "properties": keys, "additionalProperties": false}
	if len(needed) > 0 {
		s["required"] = needed
	}
	return s
}

// value returns the schema of a value.
func (w *writer) value(t reflect.Type) schema {
	if s := forms[t].schema; s != nil {
		return s
	}
	if words := wordsOf(t); len(words) > 0 {
		var list []string
		for _, c := range words {
			list = append(list, c.text)
		}
		return schema{"enum": list}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.value(t.Elem())
	case reflect.Slice:
		return schema{"type": "array", "items": w.value(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": w.value(t.Elem())}
	case reflect.Struct:
		return schema{"$ref": "#/$defs/" + w.anchor(t)[1:]}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	}
	s := schema{"type": "integer"}
	if t == reflect.TypeFor[frame.VNI]() {
		s["minimum"], s["maximum"] = 0, int(frame.MaxVNI)
	} else if !reflect.Zero(t).CanInt() {
		s["minimum"] = 0
		if t.Bits() < 64 {
			s["maximum"] = uint64(math.MaxUint64) >> (64 - t.Bits())
		}
	}
	return s
}
