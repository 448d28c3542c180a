package underlay

import (
	"testing"
	"testing/synctest"
	"time"
)

// Runs that the way out refused are tried again after a while, and not before.
func TestGiveUpForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s txSet
		for range 2 {
			s.giveUp()
			time.Sleep(splitFor / 2)
			s.giveUp() // by another worker
			time.Sleep(splitFor/2 - time.Nanosecond)
			if synctest.Wait(); !s.split.Load() {
				t.Error("tried again too early")
			}
			time.Sleep(time.Nanosecond)
			if synctest.Wait(); s.split.Load() {
				t.Error("not tried again")
			}
		}
	})
}
