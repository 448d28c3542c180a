package oracle

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	theirs "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/vxswitch/vxswitch/evpn/internal/bgp"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// heard keeps what our speaker hears.
type heard struct {
	mu     sync.Mutex
	routes map[route.Key]route.Route
	left   map[string]int
	ended  int
	err    error
}

func (h *heard) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *heard) Learned(_ netip.Addr, r *route.Route)  { h.do(func() { h.routes[r.Key] = *r }) }
func (h *heard) Withdrawn(_ netip.Addr, k *route.Key)  { h.do(func() { delete(h.routes, *k) }) }
func (h *heard) Up(netip.Addr)                         {}
func (h *heard) Down(_ netip.Addr, err error)          { h.do(func() { h.err = err; clear(h.routes) }) }
func (h *heard) Ended(netip.Addr)                      { h.do(func() { h.ended++ }) }
func (h *heard) Stale(netip.Addr, error)               {}
func (h *heard) Malformed(_ netip.Addr, reason string) { h.do(func() { h.left[reason]++ }) }

func (h *heard) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		done := false
		h.do(func() { done = ok() })
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute; %v, left out %v", what, h.err, h.left)
		}
	}
}

// A session is one of our speaker with a peer of gobgp's messages.
type session struct {
	name     string
	as, peer uint32
	narrow   bool // the peer has neither AS numbers of four bytes nor messages beyond 4096
}

var sessions = []session{
	{name: "within an AS", as: 65000, peer: 65000},
	{name: "another AS", as: 4200000001, peer: 4200000002},
	{name: "AS of two bytes", as: 65000, peer: 65001, narrow: true},
	{name: "AS_TRANS", as: 4200000001, peer: 65001, narrow: true},
}

// A conn is the peer's end.
type conn struct {
	t *testing.T
	net.Conn
	s    session
	opts []*theirs.MarshallingOption
	raw  [][]byte // UPDATEs as they came
}

// open runs our speaker, and connects to it.
func (s session) open(t *testing.T) (*bgp.BGP, *heard, *conn) {
	t.Helper()
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	n := l.Addr().(*net.TCPAddr).Port
	l.Close()
	addr := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 9, byte(n >> 8), i}) }
	at := netip.AddrPortFrom(addr(1), uint16(n))
	b := check.Must(bgp.New(bgp.Config{AS: s.as, RouterID: addr(1), Listen: []netip.AddrPort{at},
		Peers: []bgp.Peer{{Addr: addr(2), AS: int64(s.peer), Passive: true}}}))(t)
	h := &heard{routes: map[route.Key]route.Route{}, left: map[string]int{}}
	check.Run(t, func(ctx context.Context) error { return b.Run(ctx, h) })
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr(2), 0))}
	c := &conn{t: t, s: s, opts: []*theirs.MarshallingOption{{Use2ByteAS: s.narrow, ExtendedMessage: !s.narrow}}}
	h.until(t, "a connection", func() (ok bool) {
		var err error
		c.Conn, err = d.Dial("tcp", at.String())
		return err == nil
	})
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	c.hello(addr(2))
	return b, h, c
}

func (c *conn) say(m *theirs.BGPMessage) {
	c.t.Helper()
	check.Must(c.Write(check.Must(m.Serialize(c.opts...))(c.t)))(c.t)
}

// message reads the bytes of a message.
func (c *conn) message() []byte {
	c.t.Helper()
	b := make([]byte, 19)
	_, err := io.ReadFull(c, b)
	check.OK(c.t, err)
	b = append(b, make([]byte, length(b)-len(b))...)
	_, err = io.ReadFull(c, b[19:])
	check.OK(c.t, err)
	if b[18] == theirs.BGP_MSG_UPDATE {
		c.raw = append(c.raw, b)
	}
	return b
}

// next reads a message.
func (c *conn) next() *theirs.BGPMessage {
	c.t.Helper()
	b := c.message()
	m, err := theirs.ParseBGPMessage(b, c.opts...)
	if err != nil {
		c.t.Fatalf("%v: %x", err, b)
	}
	if n, ok := m.Body.(*theirs.BGPNotification); ok {
		c.t.Fatalf("notification %d/%d %x", n.ErrorCode, n.ErrorSubcode, n.Data)
	}
	return m
}

// hello opens the session, and looks at our OPEN.
func (c *conn) hello(id netip.Addr) {
	c.t.Helper()
	caps := []theirs.ParameterCapabilityInterface{theirs.NewCapMultiProtocol(theirs.RF_EVPN), theirs.NewCapRouteRefresh()}
	as := uint16(c.s.peer)
	if !c.s.narrow {
		caps = append(caps, theirs.NewCapFourOctetASNumber(c.s.peer), theirs.NewCapExtendedMessage())
		if c.s.peer > 0xffff {
			as = theirs.AS_TRANS
		}
	}
	c.say(check.Must(theirs.NewBGPOpenMessage(as, 90, id, []theirs.OptionParameterInterface{theirs.NewOptionParameterCapability(caps)}))(c.t))
	o, ok := c.next().Body.(*theirs.BGPOpen)
	if !ok {
		c.t.Fatal("no OPEN")
	}
	want := map[theirs.BGPCapabilityCode]bool{theirs.BGP_CAP_MULTIPROTOCOL: true, theirs.BGP_CAP_ROUTE_REFRESH: true, theirs.BGP_CAP_EXTENDED_MESSAGE: true,
		theirs.BGP_CAP_GRACEFUL_RESTART: true, theirs.BGP_CAP_FOUR_OCTET_AS_NUMBER: true}
	for _, p := range o.OptParams {
		for _, x := range p.(*theirs.OptionParameterCapability).Capability {
			if !want[x.Code()] {
				c.t.Errorf("capability %v", x.Code())
			}
			delete(want, x.Code())
			switch x := x.(type) {
			case *theirs.CapMultiProtocol:
				check.Equal(c.t, "family", x.CapValue, theirs.RF_EVPN)
			case *theirs.CapFourOctetASNumber:
				check.Equal(c.t, "AS", x.CapValue, c.s.as)
			case *theirs.CapGracefulRestart: // the helper only
				check.Equal(c.t, "families that restart", len(x.Tuples), 0)
				check.Equal(c.t, "restart flags and time", uint16(x.Flags)+x.Time, 0)
			}
		}
	}
	if len(want) > 0 {
		c.t.Errorf("no capabilities %v", want)
	}
	check.Equal(c.t, "hold time", o.HoldTime, 90)
	if as := o.MyAS; as != uint16(c.s.as) && (c.s.as <= 0xffff || as != theirs.AS_TRANS) {
		c.t.Errorf("AS %d", as)
	}
	c.say(theirs.NewBGPKeepAliveMessage())
}
