package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// vxsctl names the file that it was given, and prints a line for each difference.
func TestConfigWords(t *testing.T) {
	bin, err := programs()
	must(t, err)
	text := basic(t)
	r := begin(t, text)
	ctl := func(stdin string, words ...string) (string, error) {
		c := exec.CommandContext(t.Context(), filepath.Join(bin, "vxsctl"), append([]string{"-socket", r.socket, "config"}, words...)...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	next := strings.NewReplacer("SOCKET", r.socket, `{"vni": 20}`, `{"vni": 20, "ageing": "60s"}`).Replace(text)
	file := filepath.Join(t.TempDir(), "next.json")
	must(t, os.WriteFile(file, []byte(next), 0o600))
	want := "~ segments[vni 20].ageing: \"5m0s\" -> \"1m0s\"\n"
	for _, words := range [][]string{{"diff", file}, {"diff", "-"}, {"apply", "-"}} {
		if out, err := ctl(next, words...); err != nil || out != want {
			t.Errorf("%q: %v %q, want %q", words, err, out, want)
		}
	}
	if out, err := ctl("", "apply", file); err != nil || out != "" {
		t.Errorf("again: %v %q", err, out)
	}
	must(t, os.WriteFile(file, []byte("{\n  \"colour\": 1\n}"), 0o600))
	if out, err := ctl("", "apply", file); err == nil || !strings.HasPrefix(out, file+":2:3: colour: ") {
		t.Errorf("%v %q", err, out)
	}
	if out, err := ctl("[", "diff", "-"); err == nil || !strings.HasPrefix(out, "stdin:1:") {
		t.Errorf("%v %q", err, out)
	}
	if out, err := ctl("", "diff", file+".gone"); err == nil || !strings.Contains(out, "no such file") {
		t.Errorf("%v %q", err, out)
	}
}
