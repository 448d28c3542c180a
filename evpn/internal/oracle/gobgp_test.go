package oracle

import (
	"reflect"
	"strings"
	"testing"

	theirs "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

const routes = 1000

// gobgp reads of our UPDATEs what we have said, and their withdrawal, and all again when it asks.
func TestSaid(t *testing.T) {
	for i, s := range sessions {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b, _, c := s.open(t)
			all := newSource(uint64(i), false).samples(routes)
			want, keys := map[pair]sample{}, map[pair]sample{}
			for _, x := range all {
				b.Advertise(x.ours())
				if d := route.RD(x.rd.bytes()); d.String() != x.rd.String() {
					t.Errorf("%v is %v", x.rd, d)
				}
				want[x.rd], keys[x.rd] = x.seen(), x.key()
			}
			c.wantSaid(want)
			c.say(theirs.NewBGPRouteRefreshMessage(theirs.AFI_L2VPN, 0, theirs.SAFI_EVPN))
			c.wantSaid(want)
			for _, x := range all {
				b.Withdraw(x.ours().Key)
			}
			for n := 0; n < len(all); {
				u := c.update()
				n += len(u.gone)
				for _, x := range u.gone {
					x.labels = nil // a withdrawal has one, of no meaning
					if !reflect.DeepEqual(x, keys[x.rd]) {
						t.Errorf("withdrawn: %+v\nwant %+v", x, keys[x.rd])
					}
				}
				check.Equal(t, "routes said", len(u.routes), 0)
			}
		})
	}
}

// seen is what gobgp can know of a sample. Of the flags of the PMSI tunnel attribute it has the first only (leaf information required), and
// none of RFC 9574; those are looked at in TestDissected.
func (x sample) seen() sample {
	x.tunnel.flags &= 1
	return x
}

func (c *conn) update() update {
	c.t.Helper()
	for {
		switch m := c.next().Body.(type) {
		case *theirs.BGPUpdate:
			return updateOf(c.t, m)
		case *theirs.BGPKeepAlive:
		default:
			c.t.Fatalf("%T", m)
		}
	}
}

// wantSaid reads as many routes as are wanted.
func (c *conn) wantSaid(want map[pair]sample) {
	c.t.Helper()
	path, pref := map[string]string{"within an AS": "", "another AS": "4200000001;", "AS of two bytes": "65000;", "AS_TRANS": "23456;[4200000001];"}[c.s.name], -1
	if c.s.as == c.s.peer {
		pref = 100
	}
	got := map[pair]bool{}
	for len(got) < len(want) {
		u := c.update()
		for _, x := range u.routes {
			if !reflect.DeepEqual(x, want[x.rd]) {
				c.t.Errorf("%+v\nwant %+v", x, want[x.rd])
			}
			if u.path != path || u.pref != pref {
				c.t.Errorf("path %q, preference %d, want %q and %d", u.path, u.pref, path, pref)
			}
			got[x.rd] = true
		}
		check.Equal(c.t, "withdrawals", len(u.gone), 0)
	}
}

// What gobgp says, our speaker reads.
func TestHeard(t *testing.T) {
	for i, s := range sessions {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			_, h, c := s.open(t)
			all := newSource(uint64(100+i), false).samples(routes)
			for _, x := range all {
				c.say(theirs.NewBGPUpdateMessage(nil, append(x.attributes(t), s.path()...), nil))
			}
			h.until(t, "routes", func() bool { return len(h.routes) == len(all) })
			h.do(func() {
				for _, x := range all {
					want := x.seen().ours()
					if got := h.routes[want.Key]; got != want {
						t.Errorf("%+v\nwant %+v", got, want)
					}
					x.read(t, h.routes[want.Key].Communities)
				}
			})
			for len(all) > 0 {
				n := min(len(all), 50)
				var gone []theirs.PathNLRI
				for _, x := range all[:n] {
					gone = append(gone, theirs.PathNLRI{NLRI: x.nlri(t)})
				}
				a := check.Must(theirs.NewPathAttributeMpUnreachNLRI(theirs.RF_EVPN, gone))(t)
				c.say(theirs.NewBGPUpdateMessage(nil, []theirs.PathAttributeInterface{a}, nil))
				all = all[n:]
			}
			h.until(t, "withdrawals", func() bool { return len(h.routes) == 0 })
			c.say(theirs.NewEndOfRib(theirs.RF_EVPN))
			h.until(t, "the end of RIB", func() bool { return h.ended == 1 })
			h.do(func() {
				if h.err != nil || len(h.left) > 0 {
					t.Errorf("%v, left out %v", h.err, h.left)
				}
			})
		})
	}
}

// path returns AS_PATH, and LOCAL_PREF within an AS, of the peer.
func (s session) path() []theirs.PathAttributeInterface {
	switch {
	case s.as == s.peer:
		return []theirs.PathAttributeInterface{theirs.NewPathAttributeAsPath(nil), theirs.NewPathAttributeLocalPref(100)}
	case s.narrow:
		return []theirs.PathAttributeInterface{theirs.NewPathAttributeAsPath([]theirs.AsPathParamInterface{theirs.NewAsPathParam(2, []uint16{uint16(s.peer)})})}
	}
	return []theirs.PathAttributeInterface{theirs.NewPathAttributeAsPath([]theirs.AsPathParamInterface{theirs.NewAs4PathParam(2, []uint32{s.peer})})}
}

// The two EVPN communities of ours that gobgp v4.8.0 does not know make it refuse all communities of a route, which its server takes
// for a withdrawal. Once it knows them, they belong into TestSaid and TestHeard. What we write is looked at in TestDissected.
func TestUnknown(t *testing.T) {
	for _, c := range []community{{"nd", 3, 0}, {"election", 2, 1 << 16}} {
		raw := c.ours()
		_, err := theirs.ParseExtended(raw[:])
		if err == nil || !strings.HasPrefix(err.Error(), "unknown evpn subtype") {
			t.Errorf("%s: gobgp knows it now: %v", c.name, err)
		}
	}
}
