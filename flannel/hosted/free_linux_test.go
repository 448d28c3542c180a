package hosted

import (
	"strings"
	"testing"
)

// A device of somebody else is not said to be flanneld's, which may be deleted.
func TestForeignDevice(t *testing.T) {
	err := (&Config{Device: "lo"}).free()
	if err == nil || !strings.Contains(err.Error(), "device lo: is another one of this host") || strings.Contains(err.Error(), "delete") {
		t.Error(err)
	}
}
