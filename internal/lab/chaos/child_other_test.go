//go:build !linux

package chaos

func isChild() bool { return false }
