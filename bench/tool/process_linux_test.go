package tool

import (
	"os"
	"testing"
)

func TestProcess(t *testing.T) {
	for _, of := range []func(...int) (float64, error){Resident, CPU} {
		one, err := of(os.Getpid())
		both, e := of(os.Getpid(), os.Getpid())
		if err != nil || e != nil || one < 0 || both < 1.5*one {
			t.Errorf("%v, %v: %v, %v", one, err, both, e)
		}
		if _, err := of(-1); err == nil {
			t.Error("there is no such process")
		}
	}
	if mib, _ := Resident(os.Getpid()); mib < 1 || mib > 10_000 {
		t.Errorf("%v MiB", mib)
	}
	if mib, err := Slab(); err != nil || mib < 1 {
		t.Errorf("%v MiB, %v", mib, err)
	}
	if _, err := mebibytes("/proc/self/status", "RSS"); err == nil {
		t.Error("a part of a key is one")
	}
}
