package docs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMissing(t *testing.T) {
	const printed = "VNI  MAC                AGE\n100  02:00:00:00:00:01  12s\n3 packets transmitted, 3 received, time 402ms\n20:46:32.299549 port-down\n"
	for page, want := range map[string]string{
		"": "",
		"100  4a:05:53:6a:2c:ac  0s\nVNI MAC AGE\n":   "",
		"101  4a:05:53:6a:2c:ac  0s\n":                "101  4a:05:53:6a:2c:ac  0s",
		"100  tap0  0s\n":                             "100  tap0  0s",
		"3 packets transmitted, 3 received, time 9µs": "",
		"3 packets transmitted, 2 received, time 9µs": "3 packets transmitted, 2 received, time 9µs",
		"3 packets ..., time 1.5s\n4 packets ...\n":   "4 packets ...",
		"packets transmitted\n":                       "packets transmitted",
		"00:00:00.000001 port-down\n":                 "",
		"00:00:00.000001 port-up\n":                   "00:00:00.000001 port-up",
	} {
		if got := Missing(page, printed); got != want {
			t.Errorf("%q: missing %q, want %q", page, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# Page\n\n```\n## drawing\n```\n## One\n- item\n\n  ```sh left\n  a\n  ```\n## Two\n```text\nb\n\n```\n")
	want := []Block{{"", "", "", 3, "## drawing\n"}, {"sh", "left", "One", 9, "  a\n"}, {"text", "", "Two", 13, "b\n\n"}}
	if got, err := Blocks(file); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	write("```sh\na\n")
	if _, err := Blocks(file); err == nil {
		t.Error("a block without an end")
	}
}
