//go:build !linux

package underlay

import "testing"

func udpPair(t *testing.T, f func(t *testing.T, a, b ported)) {}
