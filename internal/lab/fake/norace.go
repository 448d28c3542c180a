//go:build !race

package fake

// Race: the race detector is on, and sync.Pool forgets at random.
const Race = false
