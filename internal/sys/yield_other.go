//go:build !linux

package sys

func yield() {}
