package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/node"
)

// The README explains every key of the file.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var walk func(x reflect.Type, in string)
	walk = func(x reflect.Type, in string) {
		for x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice || x.Kind() == reflect.Map {
			x = x.Elem()
		}
		if x.Kind() != reflect.Struct || seen[x] || !strings.Contains(x.PkgPath(), "vxswitch/") {
			return
		}
		seen[x] = true
		for i := range x.NumField() {
			f := x.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key != "" && !strings.Contains(string(text), "`"+key+"`") && !strings.Contains(string(text), "`"+key+"[]`") {
				t.Errorf("%s.%s is not explained", in, key)
			}
			walk(f.Type, in+"."+key)
		}
	}
	walk(reflect.TypeFor[node.Config](), "")
}
