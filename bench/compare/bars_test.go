package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// The README's picture is that of the recorded run: six bars, each as long beside the longest
// of its group as its median beside theirs.
func TestBars(t *testing.T) {
	const recorded = "../results/compare.json"
	r, err := load(recorded)
	must(t, err)
	file := filepath.Join(t.TempDir(), "bars.svg")
	var table strings.Builder
	must(t, compare(t.Context(), options{from: recorded, bars: file}, &table, nil))
	drawn, _ := os.ReadFile(file)
	kept, _ := os.ReadFile("../../docs/compare.svg")
	if string(drawn) != string(kept) {
		t.Errorf("docs/compare.svg is another picture than go run ./bench/compare -from bench/results/compare.json -bars docs/compare.svg makes")
	}
	if text, _ := os.ReadFile("../results/compare.txt"); string(text) != table.String() {
		t.Error("compare.txt is of another run than compare.json")
	}
	count, said := drawing(t, string(drawn))
	if count["rect"] != 1+6 || !strings.Contains(said, "More is better") {
		t.Errorf("%v %s", count, said)
	}
	kernel, _ := r.median("tcp1", "kernel")
	ours, _ := r.median("tcp1", judged)
	for _, want := range []string{tool.Number(kernel), tool.Number(ours)} {
		if !strings.Contains(said, "\n"+want+"\n") {
			t.Errorf("no %q in %s", want, said)
		}
	}
}

// What was not measured cannot be drawn.
func TestBarsMissing(t *testing.T) {
	r := sample()
	if _, err := r.bars(); err == nil || err.Error() != "tcp1 of ovs was not measured" {
		t.Error(err)
	}
	if _, ok := r.median("tcp1", "kernel"); !ok {
		t.Error("no median of the kernel's")
	}
	if _, err := load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
