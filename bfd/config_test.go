package bfd

import (
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestSessionConfig(t *testing.T) {
	for _, c := range []SessionConfig{{}, {Interval: MinInterval, Hold: MaxHold, Multiplier: 255}, {Interval: MaxInterval, Hold: -1}} {
		check.OK(t, c.Check())
	}
	for _, c := range []struct {
		c    SessionConfig
		want string
	}{
		{SessionConfig{Interval: MinInterval - 1}, "bfd: SessionConfig.Interval: 9.999999ms: must be"},
		{SessionConfig{Interval: MinInterval + 1}, "bfd: SessionConfig.Interval: 10.000001ms: must be"},
		{SessionConfig{Interval: MaxInterval + time.Microsecond}, "bfd: SessionConfig.Interval: 1m0.000001s: must be"},
		{SessionConfig{Multiplier: 256}, "bfd: SessionConfig.Multiplier: 256: must be"},
		{SessionConfig{Hold: MaxHold + 1}, "bfd: SessionConfig.Hold: 1h0m0.000000001s: must be at most 1h0m0s"},
	} {
		check.ErrorHas(t, c.c.Check(), c.want)
	}
}
