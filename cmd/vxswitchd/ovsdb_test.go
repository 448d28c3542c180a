package main

import (
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
)

// The line of /healthz says what is missing in each state.
func TestOVSDBTrouble(t *testing.T) {
	for want, o := range map[string]api.OVSDB{
		"":                                  {State: "connected"},
		"the database has not answered yet": {State: "connecting"},
		"connection refused":                {State: "connecting", Error: "connection refused"},
		"no such tunnel":                    {State: "failed", Error: "no such tunnel"},
		"another client has the name":       {State: "waiting", Error: "another client has the name"},
	} {
		o.Since = time.Unix(0, 0)
		got := ovsdbTrouble(o)
		if want != "" {
			want = "ovsdb is " + o.State + " since 1970-01-01T00:00:00Z: " + want
		}
		if got != want {
			t.Errorf("%s: %s", o.State, got)
		}
		if o.Stale = true; ovsdbTrouble(o) != "" {
			t.Errorf("%s, stale: %s", o.State, ovsdbTrouble(o))
		}
	}
}
