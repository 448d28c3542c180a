package secret

import (
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
