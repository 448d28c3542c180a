//go:build !linux

// Vxswitch-cni is a CNI plugin for Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "vxswitch-cni: only for Linux")
	os.Exit(1)
}
