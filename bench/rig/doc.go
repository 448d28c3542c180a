// Package rig drives the workers of a switch by hand and in memory: a [Source] is
// a receive queue that hands out as many batches as it is told, a [Port] and a
// [Wire] are a local port and an underlay made of one, and of a count of what is
// sent. What is left to measure between them is the switch and the VTEP.
//
//	Port.Run(n) --> worker: decide, write --> VTEP --> Wire counts
//	Port counts <-- worker: decide, write <-- VTEP <-- Wire.Run(n)
//
// The package is for benchmarks and their tests only.
package rig
