// Package soak is a test that runs two whole end points under full load for a while
// and asks for what grows: memory, goroutines, allocations. It needs root and Linux:
//
//	go test ./bench/soak
//	make soak SOAKTIME=5m
//
// Two hosts, each a network namespace, are joined by a veth pair; both end points are
// in this process:
//
//	host a                                  host b
//	tap0 --- switch --- VTEP --- veth --- VTEP --- switch --- tap0
//
// The load is TCP both ways and a stream of small UDP packets between the addresses of
// the TAP devices. While it runs nothing may grow: at the end the resident memory is
// what it was near the beginning, there are as many goroutines, and no place in the
// library has allocated in proportion to the frames it moved.
package soak
