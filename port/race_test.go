//go:build race

package port

// raceEnabled: sync.Pool forgets at random under the race detector.
const raceEnabled = true
