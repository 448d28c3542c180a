package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// groff has nothing to say of the pages, and they have every word of the help and every key of the schema.
func TestManuals(t *testing.T) {
	pages, err := manuals("..")
	must(t, err)
	if len(pages) != 3 {
		t.Fatalf("%d pages", len(pages))
	}
	for name, page := range pages {
		if out := format(t, page, "-ww", "-z"); out != "" {
			t.Errorf("%s: %s\n%s", name, out, page)
		}
		shown := " " + strings.Join(strings.Fields(format(t, page, "-P-cbou")), " ") + " "
		var want []string
		if program, ok := strings.CutSuffix(name, ".8"); ok {
			help, err := exec.Command("go", "run", "-C", "../cmd", "./"+program, "-h").Output()
			must(t, err)
			want = strings.Fields(string(help))
		} else {
			schema, err := os.ReadFile("../cmd/vxswitchd/schema.json")
			must(t, err)
			for _, m := range regexp.MustCompile(`"([a-z]\w+)": \{`).FindAllStringSubmatch(string(schema), -1) {
				if m[1] != "properties" && m[1] != "items" && m[1] != "additionalProperties" && !strings.Contains(string(schema), `"$ref": "#/$defs/`+m[1]+`"`) {
					want = append(want, m[1]+":")
				}
			}
		}
		for _, word := range want {
			if word = strings.TrimSuffix(word, ":"); !strings.Contains(strings.ToLower(shown), strings.ToLower(word)) && word != "Usage" {
				t.Errorf("%s has no %q", name, word)
			}
		}
		if len(want) < 40 || !strings.Contains(shown, "SEE ALSO") {
			t.Errorf("%s: %d words, %s", name, len(want), shown)
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
