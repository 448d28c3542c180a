package offload

import (
	"os"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/offload/internal/datapath"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// docs/flows.md has every cause that is counted.
func TestCausesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/flows.md")
	if err != nil {
		t.Fatal(err)
	}
	refused, missed, _ := strings.Cut(string(text), "## Frames missed")
	for _, err := range []error{
		errPort, errUnderlay, errNamespace, errChecksum, errHash, errRoute, errTransit, errPeers, errMarking, errIPsec, errFull, errDatapath, errMove,
		vswitch.ErrNoAttachment, vswitch.ErrUnknownMAC, vswitch.ErrStage, vswitch.ErrWatched, vswitch.ErrDropped, vswitch.ErrGateway, vswitch.ErrTag,
		vtep.ErrNoPeer, vtep.ErrEncapsulation,
	} {
		if !strings.Contains(refused, "\n| `"+err.Error()+"` |") {
			t.Errorf("no row of pairs refused for %v", err)
		}
	}
	for c := range datapath.NumCauses {
		if !strings.Contains(missed, "`"+c.String()+"`") {
			t.Errorf("no row of frames missed for %v", c)
		}
	}
}
