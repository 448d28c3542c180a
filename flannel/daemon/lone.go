package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// alone returns an error if another process of this host writes the same subnet file: it would get the same lease, by the same
// address, and both would lose it. The sign is an abstract Unix socket, which is of a network namespace and ends with its process.
func alone(ctx context.Context, file string) (release func(), err error) {
	for end := time.Now().Add(time.Second); ; { // a process that was killed may still be ending
		release, ok := keep(file)
		switch {
		case ok:
			return release, nil
		case time.Now().After(end):
			return nil, &setting.Error{Path: "subnetFile", Value: file, Text: "another process on this host keeps it: stop that one"}
		}
		select {
		case <-ctx.Done():
			return func() {}, nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// keep makes this process the one that writes a subnet file, and reports false if another one is.
func keep(file string) (release func(), ok bool) {
	if runtime.GOOS != "linux" {
		return func() {}, true
	}
	l, err := net.Listen("unix", fmt.Sprintf("@vxswitch-flannel-%x", sha256.Sum256([]byte(fullName(file)))))
	if err != nil {
		return func() {}, !errors.Is(err, syscall.EADDRINUSE)
	}
	return func() { l.Close() }, true
}

// fullName returns the same name for a file whether it is called by a relative path, or through a link such as /var/run. Its folder is there.
func fullName(file string) string {
	dir, base := filepath.Split(file)
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Join(dir, base)
}

// makeFolder makes the folder of the subnet file, so that one that cannot be written is an error before there is a lease.
func makeFolder(file string) error {
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if i, e := os.Stat(file); e == nil && i.IsDir() {
		err = errors.New("it is a directory; must be a file")
	}
	if err != nil {
		return &setting.Error{Path: "subnetFile", Value: file, Text: err.Error()}
	}
	return nil
}
