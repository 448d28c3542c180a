package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A file is one that users install.
type file struct {
	name string // in the tarball
	deb  string // where the Debian package puts it
	mode fs.FileMode
	data []byte
	conf bool // the user's to change
}

const docFolder = "/usr/share/doc/vxswitch/"

// files lists what is installed: the programs, the unit, a first configuration, samples, and the pages.
func (b *built) files(source string) (list []file, err error) {
	for _, name := range programs {
		dir := "/usr/bin/"
		if name == "vxswitch-cni" {
			dir = "/usr/lib/cni/" // with those of Debian's containernetworking-plugins
		}
		list = append(list, file{name: name, deb: dir + name, mode: 0o755, data: b.binaries[name]})
	}
	add := func(src, name, deb string) *file {
		data, e := os.ReadFile(filepath.Join(source, src))
		if e != nil && err == nil {
			err = e
		}
		list = append(list, file{name: name, deb: deb, mode: 0o644, data: data})
		return &list[len(list)-1]
	}
	add("cmd/vxswitchd/vxswitchd.service", "vxswitchd.service", "/usr/lib/systemd/system/vxswitchd.service")
	add("release/vxswitchd.json", "vxswitchd.json", "/etc/vxswitch/vxswitchd.json").conf = true
	add("LICENSE", "LICENSE", "")
	add("CHANGELOG.md", "CHANGELOG.md", docFolder+"CHANGELOG.md")

	walk := func(folder string, of func(src, base string)) {
		e := filepath.WalkDir(filepath.Join(source, folder), func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !strings.Contains(filepath.ToSlash(p), "/testdata/") {
				src, _ := filepath.Rel(source, p)
				of(filepath.ToSlash(src), d.Name())
			}
			return err
		})
		if err == nil {
			err = e
		}
	}
	const configs = "cmd/vxswitchd/configs/"
	walk(configs, func(src, _ string) {
		name := "configs/" + strings.TrimPrefix(src, configs)
		add(src, name, docFolder+name)
	})
	walk("cmd/vxsctl/completion", func(src, base string) {
		switch ext := path.Ext(base); ext {
		case ".bash":
			add(src, "completion/"+base, "/usr/share/bash-completion/completions/"+strings.TrimSuffix(base, ext))
		case ".zsh":
			add(src, "completion/"+base, "/usr/share/zsh/vendor-completions/_"+strings.TrimSuffix(base, ext))
		case ".fish":
			add(src, "completion/"+base, "/usr/share/fish/vendor_completions.d/"+base)
		}
	})
	if err != nil {
		return nil, err
	}
	mans, err := manuals(source)
	for _, base := range slices.Sorted(maps.Keys(mans)) {
		list = append(list, file{name: "man/" + base, deb: "/usr/share/man/man" + path.Ext(base)[1:] + "/" + base, mode: 0o644, data: mans[base]})
	}
	if err != nil {
		return nil, err
	}
	text, err := licences(source, b.arch)
	list = append(list, file{name: "LICENSES", deb: docFolder + "copyright", mode: 0o644, data: text})
	return list, err
}

// licences is the copyright file: this project's line, and the licences of what the programs link.
func licences(source, arch string) ([]byte, error) {
	args := []string{"list", "-C", filepath.Join(source, "cmd"), "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"}
	for _, name := range programs {
		args = append(args, "./"+name)
	}
	out, err := goCommand(arch, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	goroot, err := goCommand(arch, "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	text := bytes.NewBufferString("vxswitch: Apache License 2.0, as in /usr/share/common-licenses/Apache-2.0.\n")
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(modules)
	for _, m := range append([]string{"Go - " + strings.TrimSpace(string(goroot))}, slices.Compact(modules)...) {
		parts := strings.SplitN(m, " ", 3)
		if len(parts) < 3 || strings.HasPrefix(parts[0], "github.com/vxswitch/vxswitch") {
			continue
		}
		for _, pattern := range []string{"LICENSE*", "NOTICE*", "PATENTS*"} {
			found, _ := filepath.Glob(filepath.Join(parts[2], pattern))
			for _, f := range found {
				data, err := os.ReadFile(f)
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(text, "\n%s\n%s: %s\n\n%s", strings.Repeat("-", 72), parts[0], filepath.Base(f), data)
			}
		}
	}
	return text.Bytes(), nil
}
