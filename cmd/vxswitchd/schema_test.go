package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting"
)

// compiled returns the schema, which is one itself: compiling it compares it with that of its draft.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	must(t, err)
	return s
}

var jsonBlock = regexp.MustCompile("(?ms)^```json[^\n]*\n(.*?)^```")

// samples returns the configurations in this repository, and the pieces of configurations in its pages.
func samples(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".json") {
			all[path] = string(text)
			return err
		}
		for i, m := range jsonBlock.FindAllStringSubmatch(string(text), -1) {
			all[fmt.Sprintf("%s block %d", path, i)] = m[1]
		}
		return err
	}))
	return all
}

// validate checks a text. It returns false for one with comments, which is no JSON.
func validate(s *jsonschema.Schema, text []byte) (bool, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return false, nil
	}
	return true, s.Validate(doc)
}

// What the node reads is as the schema says: the samples, the examples of the pages, and what the node says it does.
func TestSchemaSamples(t *testing.T) {
	s, n := compiled(t), 0
	for name, text := range samples(t) {
		cfg, err := node.Parse([]byte(text))
		if err != nil {
			continue
		}
		written, err := json.Marshal(cfg)
		must(t, err)
		for _, text := range [][]byte{[]byte(text), written, effective(cfg)} {
			done, err := validate(s, text)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			} else if done {
				n++
			}
		}
	}
	if n < 50 {
		t.Errorf("%d texts were compared", n)
	}
}

// A key that there is not, and a value of another kind, the schema refuses as the node does, everywhere.
func TestSchemaRefuses(t *testing.T) {
	s, n := compiled(t), 0
	names := samples(t)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		cfg, err := node.Parse([]byte(names[name]))
		if err != nil {
			continue
		}
		var doc any
		must(t, json.Unmarshal(effective(cfg), &doc))
		mutate(doc, "", func(at string) {
			text, err := json.Marshal(doc)
			must(t, err)
			_, refused := validate(s, text)
			if _, err := node.Parse(text); err == nil || refused == nil {
				t.Errorf("%s: %s: node %v, schema %v", name, at, err, refused)
			}
			n++
		})
	}
	t.Logf("%d wrong texts", n)
	if n < 2000 {
		t.Errorf("%d wrong texts", n)
	}
}

// mutate puts something wrong at each place of a document in turn, calls f, and takes it away again.
func mutate(at any, path string, f func(at string)) {
	wrong := func(old any) any {
		switch old.(type) {
		case string:
			return true
		case bool:
			return "true"
		case float64:
			return []any{"x"}
		case []any:
			return map[string]any{}
		}
		return []any{}
	}
	switch x := at.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			old := x[k]
			mutate(old, path+"."+k, f)
			x[k] = wrong(old)
			f(path + "." + k)
			x[k] = nil
			f(path + "." + k + " is null")
			x[k] = old
		}
		if !strings.HasSuffix(path, "sets") { // its keys are names
			x["colour"] = "red"
			f(path + ".colour")
			delete(x, "colour")
		}
	case []any:
		for i := range x {
			old := x[i]
			at := fmt.Sprintf("%s[%d]", path, i)
			mutate(old, at, f)
			x[i] = wrong(old)
			f(at)
			x[i] = old
		}
	}
}

// Whatever the node reads for a key, the schema accepts: no editor marks what is right.
func TestSchemaKeys(t *testing.T) {
	var root map[string]any
	must(t, json.Unmarshal(schema, &root))
	values := []any{true, 0, 5, -1, 1.5, 70000, "", "x", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.1/8", "fd00::/64", "02:00:00:00:00:01",
		"0200.0000.0001", "02-00-00-00-00-01", "80", "80-90", "3/4", "1m30s", ".5h", "0", "-0s", "0x0400", "0700"}
	for _, m := range regexp.MustCompile(`"enum": \[([^\]]*)\]`).FindAllSubmatch(schema, -1) {
		var words []any
		must(t, json.Unmarshal([]byte("["+string(m[1])+"]"), &words))
		values = append(values, words...)
	}
	read, keys := 0, 0
	var visit func(object map[string]any, wrap func(any) any)
	visit = func(object map[string]any, wrap func(any) any) {
		for key, v := range object["properties"].(map[string]any) {
			keys++
			within := func(x any) any {
				o := map[string]any{key: x}
				if _, vni := object["properties"].(map[string]any)["vni"]; vni && key != "vni" {
					o["vni"] = 1
				}
				return wrap(o)
			}
			s := compiledPart(t, v.(map[string]any), root)
			below := v.(map[string]any)
			tries := slices.Clone(values)
			list := below["type"] == "array"
			if list {
				below = below["items"].(map[string]any)
				for _, x := range values {
					tries = append(tries, []any{x})
				}
			}
			if below["type"] == "object" { // a map
				for _, x := range values {
					tries = append(tries, map[string]any{"a": x}, map[string]any{"a": []any{x}})
				}
			}
			for _, x := range tries {
				text, err := json.Marshal(within(x))
				must(t, err)
				if new(node.Config).UnmarshalJSON(text) != nil || refusedAt(text, key) {
					continue
				}
				read++
				if err := s.Validate(x); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
			if ref, ok := below["$ref"].(string); ok {
				visit(root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), func(x any) any {
					if list {
						x = []any{x}
					}
					return within(x)
				})
			}
		}
	}
	visit(root, func(x any) any { return x })
	t.Logf("%d keys, %d values read", keys, read)
	if keys < 200 || read < 2*keys {
		t.Errorf("%d keys, %d values read", keys, read)
	}
}

// refusedAt reports whether the node refuses what a text has for a key, not only something beside it.
func refusedAt(text []byte, key string) bool {
	_, err := node.Parse(text)
	var list setting.Errors
	return errors.As(err, &list) && slices.ContainsFunc(list, func(e *setting.Error) bool { return strings.HasSuffix(e.Path, "."+key) })
}

// compiledPart returns the schema of the value of a key.
func compiledPart(t *testing.T, part, root map[string]any) *jsonschema.Schema {
	t.Helper()
	doc := maps.Clone(part)
	doc["$defs"] = root["$defs"]
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("part.json", doc))
	s, err := c.Compile("part.json")
	must(t, err)
	return s
}
