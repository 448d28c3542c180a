package qemu

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Busybox unpacks what the archive packs.
func TestArchiveIsCPIO(t *testing.T) {
	needs(t, "busybox")
	files := map[string]string{"/init": "#!/bin/sh\n", "/lib/a/b.so": "12345", "/lib/a/c": "", "/lib/d": "x"}
	var a archive
	for name, data := range files {
		a.add(name, []byte(data))
	}
	check.True(t, a.files == len(files)+2, "%d entries, not %d files and 2 folders", a.files, len(files))
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "busybox", "cpio", "-i", "-d")
	c.Dir, c.Stdin = dir, bytes.NewReader(a.bytes())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range files {
		file := filepath.Join(dir, name)
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
			continue
		}
		if i, err := os.Stat(file); err != nil || i.Mode() != 0o755 {
			t.Errorf("%s: mode %v, %v", name, i.Mode(), err)
		}
	}
}
