package node

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
)

// Nobody but the node changes the rows of the configuration, and other owners have names.
func TestOwners(t *testing.T) {
	n := running(t)
	must(t, n.Apply(parse(t, first)))
	u := control.Update{Snapshot: true}
	if err := n.Plane().Program(Owner, u); err == nil || !strings.Contains(err.Error(), `owner: "config": is reserved`) {
		t.Error(err)
	}
	if err := n.Program(Owner, u); err == nil {
		t.Error("Program takes the owner of the configuration")
	}
	n.Plane().Forget(Owner)
	wantDump(t, n, firstDump)
	must(t, n.Apply(new(Config)))
	for want, owners := range map[string][]string{
		`node: Options.Owners[1]: "": must be`:       {"bgp", ""},
		`node: Options.Owners[0]: "config": must be`: {Owner},
		`node: Options.Owners[0]: "a\n": must be`:    {"a\n"},
		`node: Options.Owners[1]: "bgp": duplicate`:  {"bgp", "bgp"},
	} {
		if n, err := New(&Options{Owners: owners}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", owners, err)
			n.Close()
		}
	}
}
