package bgp

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// FuzzUpdate: no body of an UPDATE does harm, and what is understood is the same when it is said again.
func FuzzUpdate(f *testing.F) {
	for _, m := range malformed {
		f.Add(m.body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 4 || len(b) > maxExtended-headerLen {
			return
		}
		var got said
		d := decoder{agreement: internal}
		if d.update(b, &got) != nil {
			return
		}
		for _, r := range got.routes {
			var again said
			s := sharedOf(&r)
			m := internal.reach(&s, appendNLRI(nil, &r))
			if err := d.update(m[headerLen:], &again); err != nil || !slices.Equal(again.routes, []route.Route{r}) {
				t.Fatalf("%v: %+v, then %+v", err, r, again)
			}
		}
		for _, k := range got.gone {
			if k.Kind == 0 {
				t.Fatalf("%+v", k)
			}
		}
	})
}

func FuzzOpen(f *testing.F) {
	f.Add((&open{as: 70000, hold: 9e9, id: [4]byte{1, 2, 3, 4}}).marshal()[headerLen:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 10 {
			return
		}
		o, err := parseOpen(b)
		if err != nil {
			return
		}
		again, err := parseOpen(o.marshal()[headerLen:])
		if err != nil || again.as != o.as || again.hold != o.hold || again.id != o.id {
			t.Fatalf("%+v, then %v, %+v", o, err, again)
		}
	})
}
