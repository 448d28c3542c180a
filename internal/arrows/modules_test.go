package arrows

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// folders returns the folders of the repository that are modules, "." for the root.
func folders(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != "../.." {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			dir, _ := filepath.Rel("../..", filepath.Dir(file))
			list = append(list, filepath.ToSlash(dir))
		}
		return err
	})
	check.OK(t, err)
	slices.Sort(list)
	return list
}

func read(t *testing.T, file string) string {
	t.Helper()
	text := check.Must(os.ReadFile(filepath.Join("../..", file)))(t)
	return string(text)
}

// In a clone, go.work joins all modules, so that examples are built from the root. The Makefile knows them too.
func TestWorkspace(t *testing.T) {
	want := folders(t)
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\.\S*)$`).FindAllStringSubmatch(read(t, "go.work"), -1) {
		got = append(got, filepath.ToSlash(filepath.Clean(m[1])))
	}
	if !slices.Equal(got, want) {
		t.Errorf("go.work has %v, want %v", got, want)
	}
	_, list, _ := strings.Cut(read(t, "Makefile"), "\nMODULES = ")
	list, _, _ = strings.Cut(list, "\n")
	if got := append([]string{"."}, strings.Fields(list)...); !slices.Equal(got, want) {
		t.Errorf("the Makefile has %v, want %v", got, want)
	}
}

// What only programs and the modules around the core need is in no go.mod, go.sum or module graph that an importer of the
// core gets.
func TestCoreIsFree(t *testing.T) {
	list := exec.Command("go", "list", "-m", "all")
	list.Dir = "../.."
	list.Env = append(os.Environ(), "GOWORK=off")
	graph, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	for where, text := range map[string]string{"go.mod": read(t, "go.mod"), "go.sum": read(t, "go.sum"), "go list -m all": string(graph)} {
		if !strings.Contains(text, bart) {
			t.Errorf("%s: no %s", where, bart)
		}
		for _, m := range []string{"github.com/cilium/ebpf", "github.com/vishvananda/", "github.com/prometheus/", module + "/"} {
			if strings.Contains(text, m) {
				t.Errorf("%s: has %s", where, m)
			}
		}
	}
}
