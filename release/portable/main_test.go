package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong on one system only is found there: in a package, in its tests, and by the size of int.
func TestCheck(t *testing.T) {
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.com/m\n\ngo 1.26\n",
		"m.go":            "package m\n\nimport \"os\"\n\nvar name = os.Args[0]\n",
		"m_windows.go":    "package m\n\nvar _ int = name\n",
		"m_test.go":       "package m\n\nimport \"testing\"\n\nfunc TestM(t *testing.T) { unix() }\n",
		"unix_test.go":    "//go:build unix\n\npackage m\n\nfunc unix() {}\n",
		"size/size.go":    "package size\n\nconst Big int = 1 << 40\n",
		"good/good.go":    "package good\n\nimport \"example.com/m/good/under\"\n\nvar _ = under.Name\n",
		"good/under/u.go": "package under\n\nconst Name = \"u\"\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ system, pattern, want string }{
		{"linux/amd64", "./...", ""},
		{"windows/amd64", ".", "m_windows.go:3:13: cannot use name"},
		{"windows/amd64", ".", "m_test.go:5:28: undefined: unix"},
		{"windows/amd64", "./good/...", ""},
		{"linux/386", "./size", "cannot use 1 << 40"},
		{"linux/386", "./good/...", ""},
		{"linux/amd64", "./none", "directory not found"},
	} {
		var out strings.Builder
		n, err := check(&out, dir, c.system, []string{c.pattern})
		if err != nil {
			t.Errorf("%s %s: %v", c.system, c.pattern, err)
		}
		if got := out.String(); (n > 0) != (c.want != "") || (got != "") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %d errors, %q", c.system, c.pattern, n, got)
		}
	}
	for _, system := range []string{"windows", "windows/none"} {
		if n, err := check(&strings.Builder{}, dir, system, []string{"./..."}); err == nil && n == 0 {
			t.Errorf("%s is taken", system)
		}
	}
}
