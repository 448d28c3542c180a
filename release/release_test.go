package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// folder has what the tests build.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "vxswitch-release-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

const version = "1.2.3"

// dist returns the folder of a release, made once.
func dist(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short builds no release")
	}
	netns.Tool(t, "git")
	dir, err := first()
	must(t, err)
	return dir
}

var first = sync.OnceValues(func() (string, error) { return releaseOf(filepath.Join(folder, "first")) })

// releaseOf makes a repository with the files of this one, whose only commit has a tag, and a release of it.
func releaseOf(dir string) (out string, err error) {
	repository := filepath.Join(dir, "repository")
	err = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch rel, _ := filepath.Rel("..", name); {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || rel == "dist"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(repository, rel), 0o755)
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "."): // those come and go beside other tests
			return nil
		default:
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(repository, rel), data, 0o644)
		}
	})
	if err != nil {
		return "", err
	}
	ignore, err := os.ReadFile("../.gitignore")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(repository, ".gitignore"), ignore, 0o644); err != nil {
		return "", err
	}
	for _, words := range []string{"init -q", "add -A", "commit -q -m release", "tag cmd/v" + version} {
		c := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=test", "-c", "user.email=test@example.com"}, strings.Fields(words)...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
		if text, err := c.CombinedOutput(); err != nil {
			return "", errors.New("git " + words + ": " + string(text))
		}
	}
	out = filepath.Join(dir, "dist")
	_, err = release(repository, out)
	return out, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the only file of the release that a pattern names.
func read(t *testing.T, pattern string) []byte {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dist(t), pattern))
	if len(found) != 1 {
		t.Fatalf("%s: %q", pattern, found)
	}
	data, err := os.ReadFile(found[0])
	must(t, err)
	return data
}

// A release from another folder is equal, and sha256sum finds its sums right.
func TestReproducible(t *testing.T) {
	a := dist(t)
	b, err := releaseOf(filepath.Join(folder, "another", "place"))
	must(t, err)
	sumsA, err := os.ReadFile(filepath.Join(a, sums))
	must(t, err)
	sumsB, err := os.ReadFile(filepath.Join(b, sums))
	must(t, err)
	if !bytes.Equal(sumsA, sumsB) {
		t.Errorf("two releases:\n%s\n%s", sumsA, sumsB)
	}
	for _, dir := range []string{a, b} {
		c := exec.Command("sha256sum", "--check", "--strict", sums)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 5 {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(a, "*")); len(found) != 6 {
		t.Errorf("a release has %q", found)
	}
}

// unpack returns the files of a tarball without their first folder.
func unpack(t *testing.T, data []byte) map[string]file {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	must(t, err)
	fs := map[string]file{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return fs
		}
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		if h.Uid != 0 || h.Gid != 0 || path.IsAbs(h.Name) {
			t.Errorf("%s of %d:%d", h.Name, h.Uid, h.Gid)
		}
		if _, name, _ := strings.Cut(h.Name, "/"); h.Typeflag == tar.TypeReg {
			fs[name] = file{name: name, mode: h.FileInfo().Mode(), data: text}
		}
	}
}

// No program has templates: they call methods by name, and then the linker keeps all methods. Only vxswitchd has some, by the package of
// gobgp that reads its files of settings.
func TestTemplates(t *testing.T) {
	for _, name := range programs {
		if name == "vxswitchd" {
			continue
		}
		out, err := goCommand(runtime.GOARCH, "list", "-C", "../cmd", "-deps", "./"+name).Output()
		must(t, err)
		for _, pkg := range strings.Fields(string(out)) {
			if pkg == "text/template" || pkg == "html/template" {
				t.Errorf("%s has %s", name, pkg)
			}
		}
	}
}

// The programs link no library, say the version of the tag, and have no paths of the machine that built them.
func TestPrograms(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, arch := range architectures {
		fs := unpack(t, read(t, "vxswitch_"+version+"_linux_"+arch+".tar.gz"))
		for _, name := range programs {
			f := fs[name]
			if f.mode != 0o755 {
				t.Errorf("%s: mode %v", name, f.mode)
			}
			e, err := elf.NewFile(bytes.NewReader(f.data))
			must(t, err)
			libraries, err := e.ImportedLibraries()
			if err != nil || len(libraries) > 0 || e.Section(".interp") != nil || e.Section(".dynamic") != nil {
				t.Errorf("%s for %s is not static: %v %v", name, arch, libraries, err)
			}
			if e.Machine != machines[arch] {
				t.Errorf("%s for %s is for %v", name, arch, e.Machine)
			}
			info, err := buildinfo.Read(bytes.NewReader(f.data))
			must(t, err)
			if info.Main.Version != "v"+version || info.Main.Path != "github.com/vxswitch/vxswitch/cmd" {
				t.Errorf("%s is of %s %s", name, info.Main.Path, info.Main.Version)
			}
			if bytes.Contains(f.data, []byte(folder)) {
				t.Errorf("%s for %s has the path of its sources", name, arch)
			}
		}
		for _, name := range []string{"vxswitchd.service", "vxswitchd.json", "LICENSE", "LICENSES", "CHANGELOG.md", "configs/mesh/a.json", "man/vxsctl.8", "man/vxswitchd.8", "man/vxflanneld.8", "man/vxswitch-cni.8", "man/vxswitchd.json.5", "completion/vxsctl.bash"} {
			if f := fs[name]; len(f.data) == 0 || f.mode != 0o644 {
				t.Errorf("%s: %d bytes, mode %v", name, len(f.data), f.mode)
			}
		}
		for _, module := range []string{"Go: LICENSE", "github.com/prometheus/client_golang: LICENSE", "github.com/prometheus/client_golang: NOTICE"} {
			if !strings.Contains(string(fs["LICENSES"].data), "\n"+module) {
				t.Errorf("LICENSES has no %s", module)
			}
		}
	}
}

func TestDebVersion(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3":                               "1.2.3",
		"1.2.3-rc.1":                          "1.2.3~rc.1",
		"0.0.0-20261124080030-5dd9e94b6b7d":   "0.0.0~20261124080030.5dd9e94b6b7d",
		"1.2.4-0.20261124080030-5dd9e94b6b7d": "1.2.4~0.20261124080030.5dd9e94b6b7d",
	} {
		if got := (&built{version: version}).debVersion(); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}
