package bench

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = check.OK
