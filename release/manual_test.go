package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// groff has nothing to say of the pages, and they have the words of the help in their order, each flag in the synopsis, and every
// key of the schema with what it is.
func TestManuals(t *testing.T) {
	pages, err := manuals("..")
	must(t, err)
	if len(pages) != 5 {
		t.Fatalf("%d pages", len(pages))
	}
	for name, page := range pages {
		if out := format(t, page, "-ww", "-z"); out != "" {
			t.Errorf("%s: %s\n%s", name, out, page)
		}
		shown := strings.Fields(format(t, page, "-P-cbou"))
		var want []string
		if program, ok := strings.CutSuffix(name, ".8"); ok {
			help, err := exec.Command("go", "run", "-C", "../cmd", "./"+program, "-h").Output()
			must(t, err)
			usage, rest, _ := strings.Cut(string(help), "\n")
			want = strings.Fields(strings.Replace(usage, "Usage:", "SYNOPSIS", 1) + " DESCRIPTION " + regexp.MustCompile(`(?m)^([A-Z][^:\n]*):( |$)`).ReplaceAllString(rest, "$1$2"))
			for _, m := range regexp.MustCompile(`(?m)^  (-\w+)( [A-Z]+)?  `).FindAllStringSubmatch(rest, -1) {
				if flag := regexp.MustCompile(`[ \[]` + m[1] + m[2] + `(\]| |$)`); !flag.MatchString(usage) && !strings.HasSuffix(usage, "[flags]") {
					t.Errorf("%s: no %s%s in %q", name, m[1], m[2], usage)
				}
			}
		} else {
			text, err := os.ReadFile("../cmd/vxswitchd/schema.json")
			must(t, err)
			var file schema
			must(t, json.Unmarshal(text, &file))
			objects := slices.SortedFunc(maps.Values(file.Defs), func(a, b *schema) int { return strings.Compare(a.Title, b.Title) })
			for _, o := range append([]*schema{&file}, objects...) {
				for _, k := range slices.Sorted(maps.Keys(o.Properties)) {
					p := o.Properties[k]
					want = append(want, strings.Fields(k+": "+p.kind(file.Defs)+" "+p.Description)...)
				}
			}
		}
		want = append(want, "SEE", "ALSO")
		n, at := len(want), 0
		for _, word := range shown {
			if at < n && word == want[at] {
				at++
			}
		}
		if at < n || n < 40 {
			t.Errorf("%s: not %q of %d words, in %s", name, want[at:min(at+10, n)], n, shown)
		}
	}
}

// format returns what groff prints for a page, on lines that no word is broken for.
func format(t *testing.T, page []byte, options ...string) string {
	t.Helper()
	c := exec.Command("groff", append([]string{"-man", "-Tutf8", "-rLL=2000n", "-rHY=0"}, options...)...)
	c.Stdin = strings.NewReader(string(page))
	out, err := c.CombinedOutput()
	must(t, err)
	return string(out)
}
