//go:build !linux

package daemon

import (
	"context"
	"fmt"
	"io"
)

// Main is for Linux.
func Main(ctx context.Context, args, env []string, version string, stdout, stderr io.Writer, open func(*Cluster) (ClusterStore, error)) int {
	fmt.Fprintln(stderr, "vxflanneld: it needs Linux")
	return 1
}
