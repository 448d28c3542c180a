package chaos

import (
	"testing"

	"go.uber.org/goleak"
)

const vni = 100

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
