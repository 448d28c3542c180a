//go:build race

package soak

// raceEnabled: the race detector keeps memory of its own, which grows, and sync.Pool
// forgets at random under it.
const raceEnabled = true
