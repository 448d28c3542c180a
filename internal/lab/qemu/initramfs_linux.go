package qemu

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// modules is what a guest loads: its network card, the tunnels, and a device for inner
// addresses.
var modules = []string{"virtio_pci", "virtio_net", "ip_tunnel", "tunnel4", "ipip", "sit", "ip6_tunnel", "dummy"}

//go:embed init.sh
var initScript []byte

// initramfs makes the guest's files, as the kernel unpacks them: with more modules than
// those of every guest, and programs of this machine by their path there.
func initramfs(k *kernel, more []string, programs map[string]string) ([]byte, error) {
	var a archive
	a.add("/init", initScript)
	if err := a.copy("busybox", "/bin/busybox"); err != nil {
		return nil, err
	}
	// The ip of busybox has no tunnels.
	if err := a.copy("ip", "/sbin/ip"); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if err := a.copy(programs[name], name); err != nil {
			return nil, err
		}
	}
	order, err := k.order(slices.Concat(modules, more)...)
	if err != nil {
		return nil, err
	}
	a.add("/modules/order", []byte(strings.Join(order, "\n")))
	for _, m := range order {
		data, err := k.load(m)
		if err != nil {
			return nil, err
		}
		a.add("/modules/"+m+".ko", data)
	}
	return a.bytes(), nil
}

// copy adds a program of this machine under a name, and the libraries it needs.
func (a *archive) copy(program, name string) error {
	file, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	a.add(name, data)
	out, err := exec.Command("ldd", file).CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "not a dynamic executable") {
			return nil
		}
		return fmt.Errorf("qemu: ldd %s: %w\n%s", file, err, out)
	}
	for _, lib := range libraries(string(out)) {
		data, err := os.ReadFile(lib)
		if err != nil {
			return err
		}
		a.add(lib, data)
	}
	return nil
}

// libraries returns the files in the output of ldd.
func libraries(ldd string) (files []string) {
	for line := range strings.Lines(ldd) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") {
				files = append(files, word)
				break // in "/lib/ld.so => /usr/lib/ld.so" the first is what programs name
			}
		}
	}
	return files
}

// memory makes a file without a name that holds data. It can be opened as the path it
// returns for as long as this process lives.
func memory(data []byte) (string, error) {
	fd, err := unix.MemfdCreate("initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("qemu: memfd_create: %w", err)
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			unix.Close(fd)
			return "", fmt.Errorf("qemu: memfd: %w", err)
		}
		data = data[n:]
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), nil
}

// forget frees a file of memory.
func forget(path string) {
	var pid, fd int
	if _, err := fmt.Sscanf(path, "/proc/%d/fd/%d", &pid, &fd); err == nil {
		unix.Close(fd)
	}
}
