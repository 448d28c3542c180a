package qemu

import (
	"bytes"
	"fmt"
	"path"
)

// An archive is a cpio archive in the format newc, which the kernel unpacks as its
// initramfs (Documentation/driver-api/early-userspace/buffer-format.rst). The zero
// value is empty.
type archive struct {
	buf     bytes.Buffer
	folders map[string]bool
	files   int
}

const (
	modeFolder = 0o040755
	modeFile   = 0o100755
)

// add puts a file at an absolute path, and the folders on the way. Everything may be
// executed.
func (a *archive) add(name string, data []byte) {
	a.folder(path.Dir(name))
	a.entry(name[1:], modeFile, data)
}

func (a *archive) folder(name string) {
	if name == "/" || a.folders[name] {
		return
	}
	a.folder(path.Dir(name))
	if a.folders == nil {
		a.folders = map[string]bool{}
	}
	a.folders[name] = true
	a.entry(name[1:], modeFolder, nil)
}

// bytes ends the archive and returns it.
func (a *archive) bytes() []byte {
	a.entry("TRAILER!!!", 0, nil)
	return a.buf.Bytes()
}

func (a *archive) entry(name string, mode uint32, data []byte) {
	a.files++
	// magic, ino, mode, uid, gid, nlink, mtime, filesize, major and minor of the device it
	// is on and of the device it is, namesize with its NUL, check
	fmt.Fprintf(&a.buf, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.files, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	a.buf.WriteString(name)
	a.buf.WriteByte(0)
	a.pad()
	a.buf.Write(data)
	a.pad()
}

func (a *archive) pad() {
	for a.buf.Len()%4 != 0 {
		a.buf.WriteByte(0)
	}
}
