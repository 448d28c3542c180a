//go:build !linux

package vectors

// Rows over real sockets are for Linux, where package underlay has them.
var udpRows, rawRows, ipipWireRows []row

type side struct{}

var sides map[string]side
