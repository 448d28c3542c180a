package chaos

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if isChild() {
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
