package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"
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
			return nil, fmt.Errorf("subnetFile: %q: another process on this host keeps it: stop that one", file)
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
	l, err := net.Listen("unix", fmt.Sprintf("@vxswitch-flannel-%x", sha256.Sum256([]byte(file))))
	if err != nil {
		return func() {}, !errors.Is(err, syscall.EADDRINUSE)
	}
	return func() { l.Close() }, true
}
