package gobgp

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// route is one of a peer, or one of ours if that is not valid.
type route struct {
	peer        netip.Addr
	prefix      netip.Prefix
	path        []uint32
	communities []string
	preference  uint32 // 0 = none
}

func (r route) String() string {
	return fmt.Sprintf("%v of %v path %v communities %v preference %d", r.prefix, r.peer, r.path, r.communities, r.preference)
}

// judge is what rules say of a route that a peer has announced: a model of Calico's words.
func judge(peers []engine.Peer, r route) (out route, ok bool) {
	var rules []engine.Rule
	longest := -1
	for _, p := range peers {
		q := p.Prefix
		if !q.IsValid() {
			q = netip.PrefixFrom(p.Addr, p.Addr.BitLen())
		}
		if q.Contains(r.peer) && q.Bits() > longest {
			rules, longest = p.Import, q.Bits()
		}
	}
	for _, x := range rules {
		if matches(&x, r) {
			return change(&x, r), !x.Reject
		}
	}
	return r, true
}

func matches(x *engine.Rule, r route) bool {
	if x.IPv6 != r.prefix.Addr().Is6() {
		return false
	}
	if x.Prefix.IsValid() {
		inside := x.Prefix.Contains(r.prefix.Addr()) && r.prefix.Bits() >= x.Least && r.prefix.Bits() <= x.Most
		if inside == x.Not {
			return false
		}
	}
	begins := len(r.path) >= len(x.ASPath) && slices.Equal(r.path[:len(x.ASPath)], x.ASPath)
	preference := r.preference
	if preference == 0 {
		preference = 100
	}
	return begins && (!x.Remote || r.peer.IsValid()) && (x.Community == "" || slices.Contains(r.communities, x.Community)) && (x.Preference == 0 || x.Preference == preference)
}

func change(x *engine.Rule, r route) route {
	r.path = slices.Concat(x.Prepend, r.path)
	r.communities = slices.Concat(r.communities, x.AddCommunities)
	if x.SetPreference != 0 {
		r.preference = x.SetPreference
	}
	return r
}

// started is a server that all tests share: gobgp writes variables of its package when it starts one.
var started = sync.OnceValue(func() *BGP {
	b := New(engine.Config{AS: 64512})
	b.server = server.NewBgpServer(server.LoggerOption(slog.New(slog.DiscardHandler), nil))
	go b.server.Serve()
	if err := b.server.StartBgp(context.Background(), &api.StartBgpRequest{Global: &api.Global{Asn: 64512, RouterId: "192.0.2.1", ListenPort: -1, UseMultiplePaths: true}}); err != nil {
		panic(err)
	}
	if err := b.assign(); err != nil {
		panic(err)
	}
	return b
})

// imported is what gobgp has of a route.
func imported(t *testing.T, b *BGP, r route) (out route, ok bool) {
	t.Helper()
	x, err := own(r.prefix, map[bool]netip.Addr{true: netip.MustParseAddr("192.0.2.9"), false: netip.MustParseAddr("2001:db8::9")}[r.prefix.Addr().Is4()])
	check.OK(t, err)
	x.Attrs = append(x.Attrs, r.attributes()...)
	if r.peer.IsValid() {
		x.PeerASN, x.PeerID, x.PeerAddress = 64513, netip.MustParseAddr("192.0.2.3"), r.peer
	}
	check.Must(b.server.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{x}}))(t)
	err = b.server.ListPath(apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: x.Family}, func(_ bgp.NLRI, paths []*apiutil.Path) {
		for _, p := range paths {
			out, ok = routeOf(p), true
		}
	})
	check.OK(t, err)
	check.OK(t, b.server.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{x}}))
	out.peer, out.prefix = r.peer, r.prefix
	return out, ok
}

func (r route) attributes() (list []bgp.PathAttributeInterface) {
	if len(r.path) > 0 {
		list = append(list, bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, r.path)}))
	}
	var small []uint32
	var large []*bgp.LargeCommunity
	for _, s := range r.communities {
		var a, b, c uint32
		if strings.Count(s, ":") == 1 {
			fmt.Sscanf(s, "%d:%d", &a, &b)
			small = append(small, a<<16|b)
		} else {
			fmt.Sscanf(s, "%d:%d:%d", &a, &b, &c)
			large = append(large, bgp.NewLargeCommunity(a, b, c))
		}
	}
	if len(small) > 0 {
		list = append(list, bgp.NewPathAttributeCommunities(small))
	}
	if len(large) > 0 {
		list = append(list, bgp.NewPathAttributeLargeCommunities(large))
	}
	if r.preference != 0 {
		list = append(list, bgp.NewPathAttributeLocalPref(r.preference))
	}
	return list
}

func routeOf(p *apiutil.Path) (r route) {
	for _, a := range p.Attrs {
		switch a := a.(type) {
		case *bgp.PathAttributeAsPath:
			for _, s := range a.Value {
				r.path = append(r.path, s.GetAS()...)
			}
		case *bgp.PathAttributeCommunities:
			for _, c := range a.Value {
				r.communities = append(r.communities, fmt.Sprintf("%d:%d", c>>16, c&0xffff))
			}
		case *bgp.PathAttributeLargeCommunities:
			for _, c := range a.Values {
				r.communities = append(r.communities, fmt.Sprintf("%d:%d:%d", c.ASN, c.LocalData1, c.LocalData2))
			}
		case *bgp.PathAttributeLocalPref:
			r.preference = a.Value
		}
	}
	return r
}

// A maker makes rules and routes.
type maker struct{ *check.Draw }

// numbers and communities that rules and routes have: few, so that they meet.
func (b maker) path() (list []uint32) {
	for range b.N(4) {
		list = append(list, check.Pick[uint32](b.Draw, 65000, 65001, 6500, 4200000000))
	}
	return list
}

func (b maker) community() string {
	return check.Pick(b.Draw, "65000:100", "65000:10", "65000:100:1", "65000:100:10", "0:0", "65535:65281")
}

func (b maker) prefix() netip.Prefix {
	a := check.Pick(b.Draw, netip.MustParseAddr("10.65.2.77"), netip.MustParseAddr("10.65.0.0"), netip.MustParseAddr("fd65::77"), netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("::"))
	p, _ := a.Prefix(b.N(a.BitLen() + 1))
	return p
}

func (b maker) rule() (r engine.Rule) {
	r.IPv6 = b.N(2) == 1
	if p := b.prefix(); p.Addr().Is6() == r.IPv6 {
		r.Prefix, r.Not = p, b.N(2) == 1
		r.Least = p.Bits() + b.N(p.Addr().BitLen()-p.Bits()+1)
		r.Most = r.Least + b.N(p.Addr().BitLen()-r.Least+1)
	}
	r.Remote = b.N(2) == 1
	if b.N(3) == 1 {
		r.Community = b.community()
	}
	if b.N(3) == 1 {
		r.ASPath = b.path()
	}
	r.Preference = check.Pick[uint32](b.Draw, 0, 0, 0, 100, 200)
	if r.Reject = b.N(2) == 1; r.Reject {
		return r
	}
	for range b.N(3) {
		r.AddCommunities = append(r.AddCommunities, b.community())
	}
	if r.Prepend = b.path(); len(r.ASPath) > 0 && len(r.Prepend) > 1 {
		r.Prepend = slices.Repeat(r.Prepend[:1], len(r.Prepend))
	}
	r.SetPreference = check.Pick[uint32](b.Draw, 0, 0, 100, 1<<31-2)
	return r
}

func (b maker) route() (r route) {
	r.peer = check.Pick(b.Draw, netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("192.0.3.3"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("198.51.100.1"))
	r.prefix, r.path = b.prefix(), b.path()
	for range b.N(3) {
		r.communities = append(r.communities, b.community())
	}
	r.preference = check.Pick[uint32](b.Draw, 0, 100, 200)
	return r
}

// peers have an address or a prefix, one in the other too.
func (b maker) peers() []engine.Peer {
	list := []engine.Peer{
		{Addr: netip.MustParseAddr("192.0.2.2"), AS: 64513}, {Prefix: netip.MustParsePrefix("192.0.2.0/24"), AS: 64513}, {Prefix: netip.MustParsePrefix("192.0.0.0/16"), AS: 64512},
		{Addr: netip.MustParseAddr("2001:db8::2"), AS: 64513},
	}
	for i := range list {
		for range b.N(4) {
			list[i].Import = append(list[i].Import, b.rule())
		}
		if i > 0 && b.N(4) == 1 {
			list[i].Import = list[i-1].Import
		}
	}
	return list
}

// Rules as statements of gobgp do with any route what the words of the rules say.
func FuzzFilter(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) { filter(t, text) })
}

// filter compares gobgp and the model, and returns how many routes rules have rejected, and changed.
func filter(t *testing.T, text []byte) (rejected, changed int) {
	b, in := started(), maker{(*check.Draw)(&text)}
	peers := in.peers()
	clear(b.peers)
	for _, p := range peers {
		b.peers[name(&p)] = p
	}
	check.OK(t, b.policies())
	for range 4 {
		r := in.route()
		want, ok := judge(peers, r)
		got, has := imported(t, b, r)
		large := func(s string) int { return strings.Count(s, ":") }
		slices.SortStableFunc(want.communities, func(a, b string) int { return large(a) - large(b) })
		slices.SortStableFunc(got.communities, func(a, b string) int { return large(a) - large(b) })
		switch {
		case has != ok || ok && fmt.Sprint(got) != fmt.Sprint(want):
			t.Errorf("%v: %v %v, want %v %v\nrules %+v", r, has, got, ok, want, peers)
		case !ok:
			rejected++
		case fmt.Sprint(want) != fmt.Sprint(r):
			changed++
		}
	}
	return rejected, changed
}

// The same with inputs of chance, of which many matter.
func TestFilterModel(t *testing.T) {
	c := rand.NewChaCha8([32]byte{24})
	rejected, changed := 0, 0
	for range 300 {
		text := make([]byte, 300)
		c.Read(text)
		r, k := filter(t, text)
		rejected, changed = rejected+r, changed+k
	}
	if rejected < 50 || changed < 50 {
		t.Errorf("of 1200 routes %d rejected, %d changed; want more", rejected, changed)
	}
}
