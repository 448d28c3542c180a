//go:build !linux

package daemon

import (
	"context"
	"fmt"
)

// Main is for Linux.
func Main(ctx context.Context, args, env []string, p *Program) int {
	fmt.Fprintln(p.Stderr, "vxflanneld: it needs Linux")
	return 1
}
