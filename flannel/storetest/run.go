package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
)

// A Fixture is a store that is empty, and ways to do with it what others do. Leases live for 2 to 5 seconds.
type Fixture struct {
	KV         func() flannel.KV // the view of one more node
	SetNetwork func(json string)
	Put        func(key string, value []byte, d time.Duration) // d in full seconds, 0 = for ever
	Remove     func(key string)
	Compact    func()        // what has happened is forgotten
	Away       func(is bool) // the nodes do not reach the store; others do
}

// Run tests a store: each case with a fixture of its own.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	for _, c := range []struct {
		name string
		test func(tester)
	}{
		{"network", network}, {"acquire", acquire}, {"previous subnet", previous}, {"several leases of one node", several},
		{"another network", changedNetwork}, {"full", full}, {"many at once", many}, {"both families", dual}, {"IPv6", six},
		{"renew", renew}, {"renew what is another's", stolen}, {"expiry", expiry}, {"reservation", reservation}, {"release", release},
		{"watch", watch}, {"watch without a gap", outage}, {"ours", ours}, {"strange keys", strange}, {"canceled", canceled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(tester{t, fixture(t)}) })
	}
}

type tester struct {
	*testing.T
	Fixture
}

const networkJSON = `{"Network": "10.3.0.0/16", "SubnetMin": "10.3.1.0", "SubnetMax": "10.3.25.0", "Backend": {"Type": "vxlan"}}`

// ok ends the test if there is an error.
func (t tester) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is ends the test unless err wraps want.
func (t tester) is(err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

func (t tester) store() *flannel.Registry { return &flannel.Registry{KV: t.KV()} }

// request is that of a node.
func request(ip string) flannel.Request {
	return flannel.Request{Attrs: flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.MustParseAddr(ip), VNI: 1}}}
}

// value is what a node writes.
func value(ip string) []byte {
	a := request(ip).Attrs
	a.IPv4.MAC = frame.MAC{2, 0, 0, 0, 0, 9}
	return a.Value()
}

// read sets the network and reads it.
func (t tester) read(json string) *flannel.Network {
	t.Helper()
	t.SetNetwork(json)
	n, err := t.store().Network(t.Context())
	t.ok(err)
	return n
}

func (t tester) acquire(s flannel.Store, n *flannel.Network, r flannel.Request) *flannel.Own {
	t.Helper()
	own, err := s.Acquire(t.Context(), n, r)
	t.ok(err)
	return own
}

// subnet is the one with a key.
func subnet(key string) flannel.Subnet {
	s, err := flannel.ParseKey(key)
	if err != nil {
		panic(err)
	}
	return s
}

// keys returns the keys of all leases.
func (t tester) keys() (list []string) {
	t.Helper()
	records, err := t.KV().List(t.Context())
	t.ok(err)
	for _, r := range records {
		list = append(list, r.Key)
	}
	slices.Sort(list)
	return list
}

func network(t tester) {
	s := t.store()
	_, err := s.Network(t.Context())
	t.is(err, flannel.ErrNoNetwork)
	t.SetNetwork(`{"Network": "10.3.0.0"}`)
	if _, err := s.Network(t.Context()); err == nil || errors.Is(err, flannel.ErrNoNetwork) {
		t.Errorf("a bad network: %v", err)
	}
	if n := t.read(networkJSON); n.IPv4.Network.String() != "10.3.0.0/16" || n.Backend.VNI != 1 {
		t.Errorf("%v", n)
	}
}

func acquire(t tester) {
	n := t.read(networkJSON)
	for i := 1; i <= 5; i++ {
		t.Put(fmt.Sprintf("10.3.%d.0-24", i), value("1.1.1.1"), 0)
	}
	s := t.store()
	own := t.acquire(s, n, request("1.2.3.4"))
	if !n.Suits(own.Subnet) || own.Subnet.IPv4.Addr().Compare(netip.MustParseAddr("10.3.5.255")) < 0 {
		t.Errorf("got %v", own.Subnet)
	}
	if !own.IPv4.MAC.IsHost() || !own.Record.Ours || !own.Record.Expires || time.Until(own.Until) > s.KV.TTL() || time.Until(own.Until) < s.KV.TTL()/2 {
		t.Errorf("%+v", own)
	}
	again := t.acquire(t.store(), n, request("1.2.3.4")) // after a restart
	if again.Subnet != own.Subnet || again.IPv4.MAC != own.IPv4.MAC {
		t.Errorf("the second time %+v, the first %+v", again.Lease, own.Lease)
	}
	r := request("1.2.3.4")
	r.IPv4.MAC = frame.MAC{2, 0, 0, 0, 0, 77}
	if got := t.acquire(t.store(), n, r); got.Subnet != own.Subnet || got.IPv4.MAC != r.IPv4.MAC {
		t.Errorf("with a MAC %+v", got.Lease)
	}
	if other := t.acquire(t.store(), n, request("1.2.3.5")); other.Subnet == own.Subnet {
		t.Errorf("two nodes have %v", own.Subnet)
	}
	if got := len(t.keys()); got != 7 {
		t.Errorf("%d leases, want 7: %v", got, t.keys())
	}
	for _, ip := range []string{"0.0.0.0", "224.0.0.1", "fd00::1"} {
		if own, err := s.Acquire(t.Context(), n, request(ip)); err == nil {
			t.Errorf("PublicIP %s: %+v", ip, own)
		}
	}
}

func previous(t tester) {
	n := t.read(networkJSON)
	t.Put("10.3.8.0-22", value("1.1.1.1"), 0)
	for key, want := range map[string]bool{
		"10.3.6.0-24": true,
		"10.3.7.0-25": false, // of another length
		"10.4.1.0-24": false, // of another network
		"10.3.9.0-24": false, // in a lease
	} {
		r := request("1.2.3.4")
		r.Previous = subnet(key)
		s := t.store()
		own := t.acquire(s, n, r)
		if (own.Subnet == r.Previous) != want || !n.Suits(own.Subnet) {
			t.Errorf("previous %v: got %v", r.Previous, own.Subnet)
		}
		t.ok(s.Release(t.Context(), own))
	}
}

// Of several leases with the own PublicIP the previous one counts, or else the first that suits; those that do not suit
// are removed if there is no other.
func several(t tester) {
	n := t.read(networkJSON)
	for _, key := range []string{"10.3.30.0-24", "10.3.20.0-24", "10.3.21.0-24"} {
		t.Put(key, value("1.2.3.4"), 60*time.Second)
	}
	if own := t.acquire(t.store(), n, request("1.2.3.4")); own.Subnet != subnet("10.3.20.0-24") {
		t.Errorf("got %v", own.Subnet)
	}
	r := request("1.2.3.4")
	r.Previous = subnet("10.3.21.0-24")
	if own := t.acquire(t.store(), n, r); own.Subnet != r.Previous || own.IPv4.MAC != (frame.MAC{2, 0, 0, 0, 0, 9}) {
		t.Errorf("got %+v, want the previous one", own.Lease)
	}
	t.Remove("10.3.20.0-24")
	t.Remove("10.3.21.0-24")
	own := t.acquire(t.store(), n, request("1.2.3.4"))
	if got := t.keys(); !slices.Equal(got, []string{own.Subnet.Key()}) || own.IPv4.MAC != (frame.MAC{2, 0, 0, 0, 0, 9}) {
		t.Errorf("leases %v, own %+v", got, own.Lease)
	}
}

func changedNetwork(t tester) {
	n := t.read(networkJSON)
	own := t.acquire(t.store(), n, request("1.2.3.4"))
	n = t.read(`{"Network": "10.4.0.0/16", "Backend": {"Type": "vxlan"}}`)
	r := request("1.2.3.4")
	r.Previous = own.Subnet
	if again := t.acquire(t.store(), n, r); !n.Suits(again.Subnet) || again.IPv4.MAC != own.IPv4.MAC {
		t.Errorf("got %+v, was %+v", again.Lease, own.Lease)
	}
	if got := t.keys(); len(got) != 1 {
		t.Errorf("leases %v", got)
	}

	// One that gets another family keeps the subnet of the first, which pods have addresses in.
	dual := t.read(`{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fd00:3::/48", "Backend": {"Type": "vxlan"}}`)
	n = t.read(`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`)
	for i, previous := range []bool{true, false} {
		r := request(fmt.Sprintf("1.2.4.%d", i+1))
		r.IPv6.PublicIP, r.IPv6.VNI = netip.MustParseAddr("2001:db8::4"), 1
		own := t.acquire(t.store(), n, r)
		if previous {
			r.Previous = own.Subnet
		}
		both := t.acquire(t.store(), dual, r)
		if both.Subnet.IPv4 != own.Subnet.IPv4 || !both.Subnet.IPv6.IsValid() {
			t.Errorf("got %v, was %v", both.Subnet, own.Subnet)
		}
		if again := t.acquire(t.store(), n, r); again.Subnet != own.Subnet {
			t.Errorf("got %v, was %v", again.Subnet, own.Subnet)
		}
	}
}

func full(t tester) {
	n := t.read(`{"Network": "10.3.0.0/28", "Backend": {"Type": "vxlan"}}`) // three subnets
	s := t.store()
	var last *flannel.Own
	for i := range 3 {
		last = t.acquire(s, n, request(fmt.Sprintf("1.2.3.%d", i+1)))
	}
	_, err := s.Acquire(t.Context(), n, request("1.2.3.9"))
	t.is(err, flannel.ErrFull)
	t.ok(s.Release(t.Context(), last))
	if own := t.acquire(s, n, request("1.2.3.9")); own.Subnet != last.Subnet {
		t.Errorf("got %v, want %v", own.Subnet, last.Subnet)
	}
}

// More nodes than subnets start at once.
func many(t tester) {
	n := t.read(`{"Network": "10.3.0.0/20", "SubnetLen": 26, "Backend": {"Type": "vxlan"}}`) // 63 subnets
	type result struct {
		own *flannel.Own
		err error
	}
	const nodes = 70
	results := make(chan result, nodes)
	for i := range nodes {
		s := t.store()
		go func() {
			for {
				own, err := s.Acquire(t.Context(), n, request(fmt.Sprintf("1.2.3.%d", i+1)))
				if !errors.Is(err, flannel.ErrTaken) { // others were faster ten times: of few subnets most are taken meanwhile
					results <- result{own, err}
					return
				}
			}
		}()
	}
	seen, refused := map[flannel.Subnet]bool{}, 0
	for range nodes {
		switch r := <-results; {
		case errors.Is(r.err, flannel.ErrFull):
			refused++
		case r.err != nil:
			t.Error(r.err)
		case seen[r.own.Subnet]:
			t.Errorf("%v twice", r.own.Subnet)
		default:
			seen[r.own.Subnet] = true
		}
	}
	if len(seen) != 63 || refused != nodes-63 {
		t.Errorf("%d subnets, %d refused", len(seen), refused)
	}
}

// outlive calls during now and then, for a bit longer than a lease lives.
func (t tester) outlive(s *flannel.Registry, during func()) {
	for end := time.Now().Add(s.KV.TTL() + 2*time.Second); time.Now().Before(end); {
		during()
		select {
		case <-t.Context().Done():
		case <-time.After(s.KV.TTL() / 4):
		}
	}
}

func renew(t tester) {
	n := t.read(networkJSON)
	s := t.store()
	own := t.acquire(s, n, request("1.2.3.4"))
	t.outlive(s, func() {
		before := own.Until
		t.ok(s.Renew(t.Context(), own))
		if !own.Until.After(before) {
			t.Errorf("until %v, before %v", own.Until, before)
		}
	})
	if got := t.keys(); !slices.Equal(got, []string{own.Subnet.Key()}) {
		t.Errorf("leases %v", got)
	}
}

// A node that comes back after its lease has ended leaves what is another's now.
func stolen(t tester) {
	n := t.read(networkJSON)
	s := t.store()
	own := t.acquire(s, n, request("1.2.3.4"))
	theirs := value("1.2.3.5")
	t.Remove(own.Subnet.Key())
	t.is(s.Renew(t.Context(), own), flannel.ErrLost)
	t.Put(own.Subnet.Key(), theirs, 0)
	t.is(s.Renew(t.Context(), own), flannel.ErrLost)
	t.is(s.Release(t.Context(), own), flannel.ErrLost)
	list, err := s.KV.List(t.Context())
	t.ok(err)
	if len(list) != 1 || string(list[0].Value) != string(theirs) || list[0].Expires || list[0].Ours {
		t.Errorf("%+v", list)
	}
	other := t.acquire(s, n, request("1.2.3.4"))
	t.Put(other.Subnet.Key(), value("1.2.3.4"), 60*time.Second) // by one with the same PublicIP
	t.is(s.Renew(t.Context(), other), flannel.ErrLost)
}

func expiry(t tester) {
	n := t.read(networkJSON)
	s := t.store()
	own := t.acquire(s, n, request("1.2.3.4"))
	t.outlive(s, func() {})
	if got := t.keys(); len(got) != 0 {
		t.Errorf("leases %v", got)
	}
	t.is(s.Renew(t.Context(), own), flannel.ErrLost)
	r := request("1.2.3.4")
	r.Previous = own.Subnet
	if again := t.acquire(s, n, r); again.Subnet != own.Subnet {
		t.Errorf("got %v, had %v", again.Subnet, own.Subnet)
	}
}

// What the operator has made for a PublicIP does not end, nor when the node releases it.
func reservation(t tester) {
	n := t.read(networkJSON)
	t.Put("10.3.7.0-24", []byte(`{"PublicIP":"1.2.3.4"}`), 0)
	s := t.store()
	own := t.acquire(s, n, request("1.2.3.4"))
	if own.Subnet != subnet("10.3.7.0-24") || own.Record.Expires || !own.Until.IsZero() || !own.Record.Ours {
		t.Errorf("%+v", own)
	}
	t.ok(s.Renew(t.Context(), own))
	t.ok(s.Renew(t.Context(), own))
	list, err := s.KV.List(t.Context())
	t.ok(err)
	if len(list) != 1 || string(list[0].Value) != string(own.Value()) || !list[0].Ours {
		t.Errorf("%+v", list)
	}
	t.ok(s.Release(t.Context(), own))
	if got := t.keys(); len(got) != 1 {
		t.Errorf("leases %v", got)
	}
	t.Put("10.3.7.0-24", value("1.2.3.4"), 0)
	t.is(s.Renew(t.Context(), own), flannel.ErrLost)
}

func release(t tester) {
	n := t.read(networkJSON)
	s := t.store()
	own := t.acquire(s, n, request("1.2.3.4"))
	t.ok(s.Renew(t.Context(), own))
	t.ok(s.Release(t.Context(), own))
	if got := t.keys(); len(got) != 0 {
		t.Errorf("leases %v", got)
	}
	t.is(s.Release(t.Context(), own), flannel.ErrLost)
}

// Calls end with their context.
func canceled(t tester) {
	t.SetNetwork(networkJSON)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := t.store()
	for name, err := range map[string]error{
		"Network": func() error { _, err := s.Network(ctx); return err }(),
		"List":    func() error { _, err := s.KV.List(ctx); return err }(),
		"Create":  func() error { _, err := s.KV.Create(ctx, "10.3.7.0-24", nil); return err }(),
		"Watch":   s.Watch(ctx, func(flannel.Change) {}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
