package port

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m)
}

var must = check.OK
