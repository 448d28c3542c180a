//go:build !race

package port

const raceEnabled = false
