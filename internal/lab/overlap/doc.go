// Package overlap tests whole fabrics, switches with VTEPs joined by an in-memory underlay,
// while everything happens at once: see TestOverlap. One thing after the other, against a
// model, is for package fuzz.
//
//	go test ./internal/lab/overlap -run TestOverlap -seed 17
package overlap
