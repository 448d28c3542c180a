package ovsdb

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
)

// The documentation names each table of the schema once, and says "written" or "read" of those alone that are handled.
func TestTables(t *testing.T) {
	text, err := os.ReadFile("/usr/share/openvswitch/vtep.ovsschema")
	if err != nil {
		t.Skip("package openvswitch-vtep is needed")
	}
	var schema struct {
		Tables map[string]struct {
			Columns map[string]any `json:"columns"`
		} `json:"tables"`
	}
	check.OK(t, json.Unmarshal(text, &schema))
	for name, columns := range table.Columns {
		for _, c := range columns {
			if schema.Tables[name].Columns[c] == nil {
				t.Errorf("%s has no column %s", name, c)
			}
		}
	}
	for file, line := range map[string]string{"doc.go": `(?m)^//\t(NAME) +(.*)$`, "../docs/ovsdb.md": `(?m)^\| (NAME) \| (.*) \|$`} {
		page := string(check.Must(os.ReadFile(file))(t))
		for name := range schema.Tables {
			found := regexp.MustCompile(strings.Replace(line, "NAME", name, 1)).FindAllStringSubmatch(page, -1)
			if len(found) != 1 {
				t.Errorf("%s: %d lines about %s", file, len(found), name)
				continue
			}
			handled := table.Columns[name] != nil || name == table.BindingStats || name == "Manager" // which package server has
			if says := regexp.MustCompile(`\b(written|read):`).MatchString(found[0][2]); says != handled {
				t.Errorf("%s: %s: %s", file, name, found[0][2])
			}
		}
	}
}

// The page has the reasons for which a row is left out, and no others.
func TestReasons(t *testing.T) {
	words := func(file, part, word string) (list []string) {
		text := regexp.MustCompile(part).Find(check.Must(os.ReadFile(file))(t))
		for _, m := range regexp.MustCompile(word).FindAllSubmatch(text, -1) {
			list = append(list, string(m[1]))
		}
		return slices.Sorted(slices.Values(list))
	}
	reasons := words("internal/table/read.go", `(?s)// Reasons.*?\n\)`, `(?m)= "([a-z-]+)"`)
	check.True(t, len(reasons) > 20, "%d reasons", len(reasons))
	check.Equal(t, "reasons of the page", strings.Join(words("../docs/ovsdb.md", `(?s)\n## Reasons.*?\n## `, "(?m)^\\| `([a-z-]+)` \\|"), " "), strings.Join(reasons, " "))
}
