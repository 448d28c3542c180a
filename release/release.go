package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

var architectures = []string{"amd64", "arm64"}

// sums is the file with the checksums of the others.
const sums = "SHA256SUMS"

// release builds everything from the repository source, and returns the names of the files in out.
func release(source, out string) (names []string, err error) {
	old, _ := filepath.Glob(filepath.Join(out, "vxswitch_*"))
	for _, file := range append(old, filepath.Join(out, sums)) {
		if err := os.RemoveAll(file); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	write := func(name string, data []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		names = append(names, name)
		return os.WriteFile(filepath.Join(out, name), data, 0o644)
	}

	var images []platform
	for _, arch := range architectures {
		b, err := build(source, arch)
		if err != nil {
			return nil, err
		}
		fs, err := b.files(source)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("vxswitch_%s_linux_%s", b.version, arch)
		data, err := tarball(name, fs, b.time)
		if err := write(name+".tar.gz", data, err); err != nil {
			return nil, err
		}
		data, err = deb(b, fs)
		if err := write(fmt.Sprintf("vxswitch_%s_%s.deb", b.debVersion(), arch), data, err); err != nil {
			return nil, err
		}
		images = append(images, platform{b, fs})
	}
	data, err := image(images)
	if err := write(fmt.Sprintf("vxswitch_%s_image.tar", images[0].version), data, err); err != nil {
		return nil, err
	}

	slices.Sort(names)
	var list []byte
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return nil, err
		}
		list = fmt.Appendf(list, "%x  %s\n", sha256.Sum256(data), name)
	}
	return names, write(sums, list, nil)
}
