//go:build race

package capture

// raceEnabled: sync.Pool forgets at random under the race detector.
const raceEnabled = true
