package qemu

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// needs skips the test without a program, or, with CI=true, fails it.
func needs(t *testing.T, program string) {
	t.Helper()
	_, err := exec.LookPath(program)
	netns.Require(t, err)
}

func write(t *testing.T, file, data string) {
	t.Helper()
	check.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
	check.OK(t, os.WriteFile(file, []byte(data), 0o644))
}

// machine makes the folders of one with a kernel.
func machine(t *testing.T, root, version string) {
	t.Helper()
	write(t, root+"/boot/vmlinuz-"+version, "kernel")
	lib := root + "/lib/modules/" + version
	write(t, lib+"/modules.dep", `kernel/a.ko:
kernel/b-b.ko.xz: kernel/a.ko
kernel/c.ko.gz: kernel/b-b.ko.xz kernel/a.ko
kernel/d.ko.zst: kernel/c.ko.gz kernel/b-b.ko.xz kernel/a.ko
kernel/e.ko: kernel/a.ko
`)
	write(t, lib+"/modules.builtin", "kernel/inside.ko\n")
}

func TestOrderPutsWhatIsNeededFirst(t *testing.T) {
	root := t.TempDir()
	machine(t, root, "1-cloud")
	k := check.Must(installed(root))(t)
	for _, c := range []struct{ ask, want string }{
		{"a", "a"}, {"b_b", "a b_b"}, {"d", "a b_b c d"}, {"e d", "a e b_b c d"}, {"inside", ""}, {"a inside a", "a"},
	} {
		got, err := k.order(strings.Fields(c.ask)...)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("order(%s) = %v, %v, want %s", c.ask, got, err, c.want)
		}
	}
	if got, err := k.order("a", "nosuch"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a module that is not there: %v, %v", got, err)
	}
}

func TestModulesAreUncompressed(t *testing.T) {
	needs(t, "busybox")
	needs(t, "zstd")
	root := t.TempDir()
	machine(t, root, "1-cloud")
	k := check.Must(installed(root))(t)
	plain := bytes.Repeat([]byte("module "), 1000)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write(plain)
	w.Close()
	zst := check.Must(filter(plain, "zstd", "-c"))(t)
	for file, data := range map[string]string{"a.ko": string(plain), "c.ko.gz": gz.String(), "d.ko.zst": string(zst), "b-b.ko.xz": xz} {
		write(t, k.modules+"/kernel/"+file, data)
	}
	for name, want := range map[string][]byte{"a": plain, "c": plain, "d": plain, "b_b": []byte("module\n")} {
		if got, err := k.load(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %.20q (%d bytes), %v", name, got, len(got), err)
		}
	}
}

func TestOneKernelIsChosen(t *testing.T) {
	root := t.TempDir()
	check.ErrorIs(t, "a machine without", check.Err(installed(root)), errNoKernel)
	write(t, root+"/boot/vmlinuz-9-cloud-amd64", "has no modules")
	check.ErrorIs(t, "a machine without modules", check.Err(installed(root)), errNoKernel)
	for _, c := range []struct{ add, want string }{
		{"6.1.0-amd64", "6.1.0-amd64"}, {"6.2.0-amd64", "6.2.0-amd64"},
		{"6.0.0-cloud-amd64", "6.0.0-cloud-amd64"}, {"6.1.0-cloud-amd64", "6.1.0-cloud-amd64"}, {"6.3.0-amd64", "6.1.0-cloud-amd64"},
	} {
		machine(t, root, c.add)
		k := check.Must(installed(root))(t)
		if k.image != root+"/boot/vmlinuz-"+c.want || k.modules != root+"/lib/modules/"+c.want {
			t.Errorf("with %s added: %s, %s", c.add, k.image, k.modules)
		}
	}
}

func TestLibraries(t *testing.T) {
	got := libraries(`	linux-vdso.so.1 (0x00007f1b73328000)
	libmnl.so.0 => /lib/x86_64-linux-gnu/libmnl.so.0 (0x00007f1b731a4000)
	/lib64/ld-linux-x86-64.so.2 => /usr/lib64/ld-linux-x86-64.so.2 (0x00007f1b7332a000)
	/lib64/ld-linux-x86-64.so.2 (0x00007f1b7332a000)
`)
	want := []string{"/lib/x86_64-linux-gnu/libmnl.so.0", "/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"}
	check.True(t, slices.Equal(got, want), "%v", got)
}

// xz is "module\n", compressed.
const xz = "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3\x01\x00\x06\x6d\x6f\x64\x75\x6c\x65\x0a\x00\x00\xdc\xe4\xe4\x4d\x1d\x4c\x49\xe1\x00\x01\x1f\x07\x16\x2e\xb8\x73\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a"
