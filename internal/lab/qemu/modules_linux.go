package qemu

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A kernel is one that is installed, with its modules.
type kernel struct {
	image   string              // file
	modules string              // folder
	needs   map[string][]string // by module, as in modules.dep: files below the folder
	files   map[string]string   // of a module, below the folder
	builtin map[string]bool
}

var errNoKernel = errors.New("no kernel with its modules in /boot and /lib/modules: install the package linux-image-cloud-amd64 (apt-get install linux-image-cloud-amd64)")

// installed returns a kernel of the machine whose root folder is given: one for virtual
// machines if there is one, since it is small and boots fast, and of several the last by
// name.
func installed(root string) (*kernel, error) {
	images, err := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(images, func(a, b string) int {
		if ca, cb := strings.Contains(a, "cloud"), strings.Contains(b, "cloud"); ca != cb {
			if ca {
				return -1
			}
			return 1
		}
		return strings.Compare(b, a)
	})
	for _, image := range images {
		_, version, _ := strings.Cut(filepath.Base(image), "-")
		k := &kernel{image: image, modules: filepath.Join(root, "lib/modules", version)}
		if err := k.read(); err == nil {
			return k, nil
		} else if !os.IsNotExist(err) {
			return nil, err
		}
	}
	return nil, errNoKernel
}

// read reads the lists that depmod made.
func (k *kernel) read() error {
	dep, err := os.ReadFile(filepath.Join(k.modules, "modules.dep"))
	if err != nil {
		return err
	}
	builtin, err := os.ReadFile(filepath.Join(k.modules, "modules.builtin"))
	if err != nil {
		return err
	}
	k.needs, k.files, k.builtin = map[string][]string{}, map[string]string{}, map[string]bool{}
	for line := range strings.Lines(string(dep)) {
		file, needs, _ := strings.Cut(line, ":")
		k.files[module(file)] = file
		k.needs[module(file)] = strings.Fields(needs)
	}
	for _, file := range strings.Fields(string(builtin)) {
		k.builtin[module(file)] = true
	}
	return nil
}

// module returns the name of the module in a file: "kernel/net/ipv4/ipip.ko.xz" is
// "ipip".
func module(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// order returns the modules and what they need, in the order to load them. Those built
// into the kernel are left out.
func (k *kernel) order(names ...string) ([]string, error) {
	var in []string
	for _, name := range names {
		if k.builtin[name] {
			continue
		}
		if k.files[name] == "" {
			return nil, fmt.Errorf("qemu: the kernel %s has no module %s", k.image, name)
		}
		var needs []string
		for _, file := range k.needs[name] {
			needs = append(needs, module(file))
		}
		first, err := k.order(needs...)
		if err != nil {
			return nil, err
		}
		in = append(append(in, first...), name)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(in, func(m string) bool {
		again := seen[m]
		seen[m] = true
		return again
	}), nil
}

// load returns a module as the kernel takes it, not compressed.
func (k *kernel) load(name string) ([]byte, error) {
	file := filepath.Join(k.modules, k.files[name])
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(file) {
	case ".ko":
		return data, nil
	case ".gz":
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("qemu: %s: %w", file, err)
		}
		return io.ReadAll(r)
	case ".xz":
		return filter(data, "busybox", "xzcat")
	case ".zst":
		return filter(data, "zstd", "-dc")
	}
	return nil, fmt.Errorf("qemu: %s: a compression that is not known", file)
}

// filter returns what a program makes of data.
func filter(data []byte, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Stdin = bytes.NewReader(data)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("qemu: %s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}
