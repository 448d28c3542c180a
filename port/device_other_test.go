//go:build !linux

package port

import (
	"errors"
	"testing"
)

func TestTAPIsUnsupported(t *testing.T) {
	if _, err := OpenTAP("tap0", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("OpenTAP: %v", err)
	}
}

// child is for systems that have devices.
func child() bool { return false }
