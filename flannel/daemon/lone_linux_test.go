package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// One process writes a subnet file. The next may once it has ended.
func TestAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "subnet.env")
	release, err := alone(t.Context(), file)
	check.OK(t, err)
	if _, err := alone(t.Context(), file); err == nil || !strings.Contains(err.Error(), "another process on this host keeps it") {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	check.OK(t, os.Symlink(filepath.Dir(file), link))
	for _, name := range []string{filepath.Join(link, "subnet.env"), filepath.Dir(file) + "/../" + filepath.Base(filepath.Dir(file)) + "/subnet.env", "subnet.env"} {
		t.Chdir(filepath.Dir(file))
		if free, ok := keep(name); ok {
			t.Errorf("%s is another file", name)
			free()
		}
	}
	other, err := alone(t.Context(), file+"2")
	if err != nil {
		t.Error(err)
	} else {
		other()
	}
	time.AfterFunc(100*time.Millisecond, release)
	again := check.Must(alone(t.Context(), file))(t)
	again()
}

// A subnet file that cannot be one is an error before there is a lease.
func TestMakeFolder(t *testing.T) {
	dir := t.TempDir()
	for file, want := range map[string]string{
		dir + "/a/b/subnet.env": "",
		dir:                     "subnetFile: \"" + dir + "\": it is a directory; must be a file",
		"/proc/none/subnet.env": "subnetFile: \"/proc/none/subnet.env\": mkdir /proc/none: no such file or directory",
	} {
		if err := makeFolder(file); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}
