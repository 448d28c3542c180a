//go:build !purego

package wire

import "golang.org/x/sys/cpu"

// sumWide adds up b, whose length is a multiple of wide and not 0, as little endian
// 32-bit words. It needs AVX2.
//
//go:noescape
func sumWide(b []byte) uint64

// wide is the step of sumWide: 0 on a processor that lacks what it takes.
func wide() int {
	if cpu.X86.HasAVX2 {
		return 128
	}
	return 0
}
