package daemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// One process writes a subnet file. The next may once it has ended.
func TestAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "subnet.env")
	release, err := alone(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alone(t.Context(), file); err == nil || !strings.Contains(err.Error(), "another process on this host keeps it") {
		t.Error(err)
	}
	other, err := alone(t.Context(), file+"2")
	if err != nil {
		t.Error(err)
	} else {
		other()
	}
	time.AfterFunc(100*time.Millisecond, release)
	again, err := alone(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
