package store_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/ovsdb/internal/ovslab"
	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

// The lock of a file is that of ovsdb-server and ovsdb-tool, and holds within a program, too, and by whatever name the file is opened.
func TestLock(t *testing.T) {
	open := func(path string) (*store.Database, error) {
		db, _, err := store.Open(path, store.VTEP(), store.DefaultLimits)
		return db, err
	}
	s := ovslab.New(t)
	_, err := open(s.File())
	check.ErrorHas(t, err, s.File()+": process ", " uses it")
	s.Stop()

	other := filepath.Join(t.TempDir(), "link")
	check.OK(t, os.Symlink(s.File(), other))
	db := check.Must(open(other))(t)
	_, err = open(s.File())
	check.ErrorHas(t, err, s.File()+": another program uses it")
	compact := func() string {
		out, _ := exec.Command("ovsdb-tool", "compact", s.File()).CombinedOutput()
		return string(out)
	}
	if out := compact(); !strings.Contains(out, "lock") {
		t.Errorf("ovsdb-tool compact: %q", out)
	}
	check.OK(t, db.Close())
	check.Equal(t, "ovsdb-tool compact", compact(), "")
	check.OK(t, check.Must(open(s.File()))(t).Close())
}
