package carry

import (
	"errors"

	vswitch "github.com/vxswitch/vxswitch/switch"
)

// open has the flows of a switch carried. See testdata/open.txt.
func open(*vswitch.Switch) (carrier, error) {
	return nil, errors.New("carry: this program has no offload: make carried")
}
