package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// compiled returns the schema, which is one itself: compiling it compares it with that of its draft.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc := check.Must(jsonschema.UnmarshalJSON(bytes.NewReader(schema)))(t)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("schema.json", doc))
	s := check.Must(c.Compile("schema.json"))(t)
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

// sectioned matches a configuration with a section of vxswitchd.
var sectioned = regexp.MustCompile(`\n  "(bgp|calico|discovery|evpn|flannel|ovsdb)": \{"`)

// What the node reads is as the schema says: the samples, the examples of the pages, and what the node says it does.
func TestSchemaSamples(t *testing.T) {
	s, n := compiled(t), 0
	for name, text := range samples(t) {
		cfg, err := file.Parse([]byte(text))
		if err != nil {
			if sectioned.MatchString(text) {
				t.Errorf("%s: %v", name, err)
			}
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

// defaultOf has the forms in which a comment says a default.
var defaultOf = regexp.MustCompile(`"default", the default: (\w+)|"(\w+)", the default|"(\w+)", none, by default|([\d-]+) by default|` +
	`\b[Dd]efault "?([\d,]+(?: m?s\b)?)|\b0 (?:=|means|is) "?([\w,]+(?: [KM]iB)?)`)

const longFile = `{
  "tunnels": [{"name": "a", "local": "192.0.2.1", "peers": "listed", "bfd": {}}, {"name": "b", "local": "192.0.2.1", "port": 4791}],
  "ports": [{"name": "tap0"}], "policies": [{"name": "p"}], "vrfs": [{"name": "v"}],
  "segments": [{"vni": 10, "neighbours": {}, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24"], "bfd": {}}}],
  "control": {"socket": "/run/s"}}`

// The defaults that the node says it has are those of the schema, which has them from the comments.
func TestSchemaDefaults(t *testing.T) {
	cfg := check.Must(file.Parse([]byte(longFile)))(t)
	was := check.Must(treeOf([]byte(longFile)))(t)
	is := check.Must(treeOf(effective(cfg)))(t)
	root := check.Must(treeOf(schema))(t)
	n, spaces := 0, strings.NewReplacer(" ", "", ",", "")
	var compare func(path string, was, is any, of map[string]any)
	compare = func(path string, was, is any, of map[string]any) {
		switch is := is.(type) {
		case map[string]any:
			for of["$ref"] != nil || of["items"] != nil {
				if items, ok := of["items"].(map[string]any); ok {
					of = items
				} else {
					of = root["$defs"].(map[string]any)[strings.TrimPrefix(of["$ref"].(string), "#/$defs/")].(map[string]any)
				}
			}
			old, _ := was.(map[string]any)
			for k, v := range is {
				compare(path+"."+k, old[k], v, of["properties"].(map[string]any)[k].(map[string]any))
			}
			return
		case []any:
			if was != nil {
				for i := range is {
					compare(fmt.Sprintf("%s[%d]", path, i), was.([]any)[i], is[i], of)
				}
				return
			}
		}
		if was != nil || is == false {
			return
		}
		n++
		about, want, got := of["description"].(string), "", fmt.Sprint(is)
		if m := defaultOf.FindStringSubmatch(about); m != nil {
			want = spaces.Replace(cmp.Or(m[1], m[2], m[3], m[4], m[5], m[6]))
		}
		if d, err := time.ParseDuration(want); err == nil && d != 0 {
			want = d.String()
		}
		for unit, bytes := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20} {
			if x, ok := strings.CutSuffix(want, unit); ok {
				x, _ := strconv.Atoi(x)
				want = fmt.Sprint(x * bytes)
			}
		}
		if got != cmp.Or(map[string]string{"none": "0", "half": "4096"}[want], want) { // of tos, and of the default of limit
			t.Errorf("%s is %s, and the schema says %q: %s", path, got, want, about)
		}
	}
	compare("", was, is, root)
	if n < 40 {
		t.Errorf("%d defaults", n)
	}
}

// A key that there is not, and a value of another kind, the schema refuses as the node does, everywhere.
func TestSchemaRefuses(t *testing.T) {
	s, n := compiled(t), 0
	names := samples(t)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		cfg, err := file.Parse([]byte(names[name]))
		if err != nil {
			continue
		}
		var doc any
		must(t, json.Unmarshal(effective(cfg), &doc))
		mutate(doc, "", func(at string) {
			text, err := json.Marshal(doc)
			must(t, err)
			_, refused := validate(s, text)
			if _, err := file.Parse(text); err == nil || refused == nil {
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
				if !reads(text) || refusedAt(text, key) {
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

// reads reports whether all values of a text are of the right types.
func reads(text []byte) bool {
	r, err := conf.Read(text, new(file.Config), nil)
	return err == nil && r.Err() == nil
}

// refusedAt reports whether the node refuses what a text has for a key, not only something beside it.
func refusedAt(text []byte, key string) bool {
	_, err := file.Parse(text)
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
	s := check.Must(c.Compile("part.json"))(t)
	return s
}
