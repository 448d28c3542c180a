//go:build !linux

package vectors

import "testing"

// Rows over real sockets are for Linux, where package underlay has them.
var udpRows []row

type side struct{}

var sides = map[string]side{}

var _ = testing.Verbose
