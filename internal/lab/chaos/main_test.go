package chaos

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/carry"
)

const vni = 100

func TestMain(m *testing.M) { goleak.VerifyTestMain(carry.Suite{M: m}) }
