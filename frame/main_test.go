package frame

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// panics reports whether f does.
func panics(f func()) (p bool) {
	defer func() { p = recover() != nil }()
	f()
	return false
}
