package gso

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// 62 kB of TCP, as a TAP hands them over, into segments for a tunnel.
func BenchmarkCut(b *testing.B) {
	k := packet{payload: pattern(62000), tcpOptions: timestamps}
	f := k.super(1448)
	prefix := make([]byte, 8)
	var c Cutter
	var parts [][]byte
	b.SetBytes(62000)
	b.ReportAllocs()
	for b.Loop() {
		c.Reset()
		parts, _ = c.Cut(parts[:0], prefix, f)
	}
}

// 44 segments of a tunnel into one superframe.
func BenchmarkJoin(b *testing.B) {
	for name, k := range map[string]packet{
		"tcp4": {payload: pattern(44 * 1448), tcpOptions: timestamps},
		"tcp6": {payload: pattern(44 * 1428), tcpOptions: timestamps, v6: true},
	} {
		b.Run(name, func(b *testing.B) {
			out := stream(k, len(k.payload)/44)
			var j Joiner
			b.SetBytes(int64(len(k.payload)))
			b.ReportAllocs()
			for b.Loop() {
				if n, _, _ := j.Join(out); n != 44 {
					b.Fatal(n)
				}
			}
		})
	}
}

// Frames of two flows that take turns: nothing can be joined.
func BenchmarkJoinNothing(b *testing.B) {
	out := stream(packet{payload: pattern(1448), tcpOptions: timestamps}, 1448)
	out = append(out, stream(packet{payload: pattern(1448), tcpOptions: timestamps, seq: 99}, 1448)...)
	var j Joiner
	b.ReportAllocs()
	for b.Loop() {
		if n, _, _ := j.Join(out); n != 1 {
			b.Fatal(n)
		}
	}
}

// What every packet out of a tunnel pays.
func BenchmarkPending(b *testing.B) {
	for name, k := range packets(100) {
		b.Run(name, func(b *testing.B) {
			f := over(k.bytes(), k.frameKind(), frame.GSO{})
			for b.Loop() {
				if Pending(f.Bytes(), f.Kind) {
					b.Fatal("finished")
				}
			}
		})
	}
}
