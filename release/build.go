package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

var programs = []string{"vxflanneld", "vxsctl", "vxswitch-cni", "vxswitchd"}

// A built is the programs for one architecture.
type built struct {
	arch     string
	version  string // of the module, without its v
	commit   string // "" outside a repository
	time     time.Time
	binaries map[string][]byte
}

// build links the programs. They need no files of the system, and have no paths of this one.
func build(source, arch string) (*built, error) {
	dir, err := os.MkdirTemp("", "vxswitch-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args := []string{"build", "-C", filepath.Join(source, "cmd"), "-trimpath", "-buildvcs=auto", "-ldflags=-s -w", "-o", dir + "/"}
	for _, name := range programs {
		args = append(args, "./"+name)
	}
	if out, err := goCommand(arch, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build for %s: %w\n%s", arch, err, out)
	}
	b := &built{arch: arch, version: "0.0.0-devel", time: time.Unix(0, 0).UTC(), binaries: map[string][]byte{}}
	for _, name := range programs {
		file := filepath.Join(dir, name)
		if b.binaries[name], err = os.ReadFile(file); err != nil {
			return nil, err
		}
		if err := b.stamp(file); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// stamp takes version, commit and time from the build information of a program.
func (b *built) stamp(file string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	if v, ok := strings.CutPrefix(info.Main.Version, "v"); ok {
		b.version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.time":
			if b.time, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return fmt.Errorf("vcs.time %q: %w", s.Value, err)
			}
		}
	}
	return nil
}

// debVersion returns the version as dpkg orders it: 1.2.3-rc.1 comes before 1.2.3.
func (b *built) debVersion() string {
	number, pre, ok := strings.Cut(b.version, "-")
	if !ok {
		return number
	}
	return number + "~" + strings.ReplaceAll(pre, "-", ".")
}

// tags are those of the build. Without grpcnotrace, grpc has pages that show its calls, which nobody turns on here, and their
// templates call methods by name, so that the linker keeps all methods: programs are a quarter larger, and so is their memory.
const tags = "grpcnotrace"

// goCommand is the go command for Linux on an architecture, the same wherever it runs. It links what go.mod says: go.work has
// the versions that suit all modules of the repository.
func goCommand(arch string, args ...string) *exec.Cmd {
	c := exec.Command("go", args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-trimpath -tags="+tags, "GOWORK=off")
	return c
}
