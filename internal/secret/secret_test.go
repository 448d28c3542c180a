package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if _, err := Password(file); err != fs.ErrNotExist && !strings.Contains(err.Error(), "no such file") || strings.Contains(err.Error(), file) {
		t.Error(err)
	}
	for text, want := range map[string]string{"a": "a", "a b\r\nc": "a b", strings.Repeat("x", 80) + "\n": strings.Repeat("x", 80)} {
		check.OK(t, os.WriteFile(file, []byte(text), 0o600))
		check.Equal(t, "password", check.Must(Password(file))(t), want)
	}
	for _, text := range []string{"", "\nx", "\r\n", strings.Repeat("x", 81)} {
		check.OK(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := Password(file)
		check.True(t, err != nil && strings.HasSuffix(err.Error(), "bytes; must have 1 to 80"), "%q: %v", text, err)
	}
}

// TestRead has files whose reading would not end, or would fill the memory.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	check.OK(t, os.WriteFile(large, nil, 0o600))
	check.OK(t, os.Truncate(large, most+1))
	files := map[string]string{
		dir:   "it is a directory; must be a regular file",
		large: "it has more than 1048576 bytes",
	}
	if err := mkfifo(pipe); !errors.Is(err, errors.ErrUnsupported) {
		check.OK(t, err)
		files[pipe], files[os.DevNull] = "it is a pipe; must be a regular file", "it is a device; must be a regular file"
	}
	for file, want := range files {
		_, err := Read(file)
		check.Equal(t, file, fmt.Sprint(err), want)
	}
	check.OK(t, os.Truncate(large, most))
	check.Equal(t, "bytes", len(check.Must(Read(large))(t)), most)
}
