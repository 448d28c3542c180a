package fdb

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/mix/mixtest"
)

func TestHomes(t *testing.T) {
	mixtest.Table(t, mixtest.Word{Lo: 1<<48 - 1}, mixtest.Word{}, func(k *mix.Key, w mixtest.Word) uint64 {
		a := array{seed: *k}
		return a.home(w.Lo)
	})
	if a, b := newArray(16, false), newArray(16, false); a.seed == b.seed {
		t.Error("two arrays have one seed")
	}
}
