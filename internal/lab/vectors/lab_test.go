package vectors

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A lab is one switch under test, at address 1 of the underlay, and far ends that
// are members of the network and nothing else: what they send and get is bytes.
type lab struct {
	*mem.Fabric
	ip6 bool
	typ encap.Type   // of the VTEP
	vc  *vtep.Config // of a router's

	*mem.Node
	seg *vswitch.VSI        // VNI 100
	tun *vswitch.Attachment // of the VTEP, tag 100

	ends []end // all that there are beside hosts
}

const vni = 100

// floods is the flood list of VNI 100: numbers of far ends.
type floods []byte

// start makes the switch under test, with its VTEP in VNI 100. The settings may be a
// *vswitch.Config, a *vtep.Config, a *vswitch.VSIConfig of VNI 100, a vswitch.AttachConfig of
// the VTEP in it, and floods, in any order.
func (l *lab) start(with ...any) {
	l.T.Helper()
	ac, flood := l.node(l.addr(1).String(), with)
	l.tun = check.Must(l.seg.AttachWith(l.VTEP, vni, &ac))(l.T)
	if len(flood) > 0 {
		l.flood(flood...)
	}
}

// bridge is start without a tunnel, and without the settings of one.
func (l *lab) bridge(with ...any) { l.T.Helper(); l.node("10.0.0.1", with) }

// bridged starts a bridge with two hosts.
func (l *lab) bridged() (a, b *mem.Host) {
	l.T.Helper()
	l.bridge()
	return l.host(), l.host()
}

func (l *lab) node(addr string, with []any) (ac vswitch.AttachConfig, flood floods) {
	l.T.Helper()
	var sc *vswitch.Config
	var vc *vtep.Config
	var cfg *vswitch.VSIConfig
	for _, x := range with {
		switch x := x.(type) {
		case *vswitch.Config:
			sc = x
		case *vtep.Config:
			if vc = x; x != nil {
				l.typ = x.Type
			}
		case *vswitch.VSIConfig:
			cfg = x
		case vswitch.AttachConfig:
			ac = x
		case floods:
			flood = x
		default:
			l.T.Fatalf("%T is no setting", x)
		}
	}
	l.Node = l.NodeWith(addr, sc, vc)
	l.seg = l.vsi(vni, cfg)
	return ac, flood
}

// pair starts the switch, a host in VNI 100 and far end 2; trio far end 3 too.
func (l *lab) pair(with ...any) (h *mem.Host, f *far) {
	l.T.Helper()
	l.start(with...)
	return l.host(), l.far(2)
}

func (l *lab) trio(with ...any) (h *mem.Host, f, g *far) {
	l.T.Helper()
	h, f = l.pair(with...)
	return h, f, l.far(3)
}

func (l *lab) vsi(n frame.VNI, cfg *vswitch.VSIConfig) *vswitch.VSI {
	l.T.Helper()
	v := check.Must(l.VSI(n, cfg))(l.T)
	return v
}

// join attaches the VTEP to another VNI.
func (l *lab) join(n frame.VNI) (*vswitch.VSI, *vswitch.Attachment) {
	l.T.Helper()
	v := l.vsi(n, nil)
	a := check.Must(v.Attach(l.VTEP, uint32(n)))(l.T)
	return v, a
}

func (l *lab) must(err error) { l.T.Helper(); check.OK(l.T, err) }

// check fails the test unless ok.
func (l *lab) check(ok bool, format string, args ...any) {
	l.T.Helper()
	check.True(l.T, ok, format, args...)
}

// host returns a new host in VNI 100.
func (l *lab) host() *mem.Host { l.T.Helper(); return l.Host(vni) }

// addr returns an underlay address of the lab's family.
func (l *lab) addr(i byte) netip.Addr {
	return pick(l.ip6, netip.AddrFrom4([4]byte{10, 0, 0, i}), netip.AddrFrom16([16]byte{0: 0xfd, 15: i}))
}

// at returns where a far end of the VTEP's type is, and atOf of another type.
func (l *lab) at(i byte) netip.AddrPort { return l.atOf(l.typ, i) }
func (l *lab) atOf(t encap.Type, i byte) netip.AddrPort {
	return netip.AddrPortFrom(l.addr(i), mem.Port(t))
}

// flood sets the flood list of VNI 100.
func (l *lab) flood(peers ...byte) {
	l.T.Helper()
	var to []netip.AddrPort
	for _, i := range peers {
		to = append(to, l.at(i))
	}
	l.must(l.VTEP.SetFlood(vni, to...))
}

// passes sends a frame from a host or a far end, and fails the test unless others get it.
func (l *lab) passes(from any, b []byte, to ...any) {
	l.T.Helper()
	switch x := from.(type) {
	case *mem.Host:
		x.Send(b)
	case *far:
		x.send(l.inTunnel(b))
	default:
		l.T.Fatalf("%T sends no frames", x)
	}
	for _, x := range to {
		switch x := x.(type) {
		case *mem.Host:
			x.Want(b)
		case *far:
			x.want(l.inTunnel(b))
		default:
			l.T.Fatalf("%T gets no frames", x)
		}
	}
}

// inTunnel is a frame of VNI 100 in the VTEP's encapsulation.
func (l *lab) inTunnel(b []byte) []byte {
	if l.typ == encap.TypeGPE {
		return gpe(vni, 3, b)
	}
	return vx(vni, b)
}

// forget takes whatever has arrived anywhere.
func (l *lab) forget() {
	for _, h := range l.Hosts() {
		h.Got()
	}
	for _, e := range l.ends {
		e.got()
	}
}

// quiet fails the test if anything is left at any host or end.
func (l *lab) quiet() {
	l.T.Helper()
	l.WantQuiet()
	for _, e := range l.ends {
		e.want()
	}
}

// clean is quiet, and fails the test if any switch has dropped anything.
func (l *lab) clean() { l.T.Helper(); l.quiet(); l.WantNoDrops() }

// drops fails the test unless exactly these drops were counted: pairs of a reason's
// name and a number. They are counted by port and by VSI; drops of frames in no VSI
// are on the port only.
func (l *lab) drops(want map[string]uint64) { l.T.Helper(); l.WantDrops(want) }

// dropped is quiet, and fails the test unless exactly these drops were counted, with a name each.
func (l *lab) dropped(reasons ...string) {
	l.T.Helper()
	want := map[string]uint64{}
	for _, r := range reasons {
		want[r]++
	}
	l.quiet()
	l.drops(want)
}

func one(reason string) map[string]uint64 { return map[string]uint64{reason: 1} }

// table is what a MAC table must hold.
type table map[frame.MAC]frame.Dest

// wantFDB fails the test unless the table holds exactly this.
func (l *lab) wantFDB(v *vswitch.VSI, want table) {
	l.T.Helper()
	l.Settle()
	got := table{}
	for e := range v.FDB().All() {
		got[e.MAC] = e.Dest
	}
	if !maps.Equal(got, want) {
		l.T.Errorf("FDB of VNI %d: %v, want %v", v.VNI(), got, want)
	}
}

// entry returns the entry of a MAC in VNI 100, which must be there.
func (l *lab) entry(m frame.MAC) fdb.Entry {
	l.T.Helper()
	l.Settle()
	e, ok := l.seg.FDB().Get(m)
	check.True(l.T, ok, "no entry of %v", m)
	return e
}

// set makes an entry in VNI 100.
func (l *lab) set(m frame.MAC, d frame.Dest, flags fdb.Flags) {
	l.T.Helper()
	l.must(l.seg.FDB().Set(m, d, flags))
}

// peer returns the number of the peer at an address, 0 if there is none.
func (l *lab) peer(i byte) uint16 {
	for _, p := range l.VTEP.Stats().Peers {
		if p.Addr.Addr() == l.addr(i) {
			return p.Peer
		}
	}
	return 0
}

// listed makes the far end at an address a peer, and returns where MACs behind it are.
func (l *lab) listed(i byte) frame.Dest {
	l.T.Helper()
	n := check.Must(l.VTEP.AddPeer(l.at(i)))(l.T)
	return l.tun.Dest(n)
}

// dest returns where the table says MACs behind a far end are.
func (l *lab) dest(i byte) frame.Dest {
	l.T.Helper()
	n := l.peer(i)
	if n == 0 {
		l.T.Errorf("%v is no peer", l.addr(i))
	}
	return l.tun.Dest(n)
}

// pass lets time go by.
func (l *lab) pass(d time.Duration) { time.Sleep(d); l.Settle() }

// A watch collects events.
type watch struct {
	l *lab
	e *vswitch.Events
}

func (l *lab) watch() *watch { return &watch{l, l.Events()} }

// writes has a VTEP send frames to a peer, 0 is all of VNI 100, and returns why it did not.
func (l *lab) writes(v *vtep.VTEP, peer uint16, frames ...[]byte) (drops []frame.Reason) {
	l.T.Helper()
	for _, b := range frames {
		f := frame.Make(b)
		out := []frame.Out{{F: &f, Peer: peer, Tag: vni}}
		l.must(v.Writer(1000).Write(out))
		drops = append(drops, out[0].Drop)
	}
	l.Settle()
	return drops
}

// got takes the events there are.
func (w *watch) got() (evs []frame.Event) {
	w.l.Settle()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
		ev, err := w.e.Next(ctx)
		cancel()
		if err != nil {
			return evs
		}
		if ev.Kind == frame.EventPeerUp { // where MACs are sent from, before they are learned
			continue
		}
		ev.Time, ev.Name, ev.OldName = time.Time{}, "", ""
		evs = append(evs, ev)
	}
}

func (w *watch) want(evs ...frame.Event) {
	w.l.T.Helper()
	if got := w.got(); !slices.Equal(got, evs) {
		w.l.T.Errorf("events %+v, want %+v", got, evs)
	}
}

// vx returns a datagram's payload: a frame behind a VXLAN header, written out here
// so that nothing of the code under test has a part in it.
func vx(n frame.VNI, inner []byte) []byte {
	return append([]byte{8, 0, 0, 0, byte(n >> 16), byte(n >> 8), byte(n), 0}, inner...)
}

// vxs is vx of several frames.
func vxs(n frame.VNI, inner [][]byte) (all [][]byte) {
	for _, b := range inner {
		all = append(all, vx(n, b))
	}
	return all
}

// pick returns yes if so, else no: mostly what IPv6 has, and IPv4.
func pick[T any](so bool, no, yes T) T {
	if so {
		return yes
	}
	return no
}

// far MACs, of hosts behind far ends.
func rmac(i byte) frame.MAC { return frame.MAC{2, 0xfa, 0, 0, 0, i} }

// mcast is a multicast MAC of no special meaning.
var mcast = frame.MAC{1, 0, 0x5e, 1, 2, 3}

// nobody is a unicast MAC that nobody has.
var nobody = frame.MAC{2, 0xbb, 0, 0, 0, 0xbb}

func eth(dst, src frame.MAC, text string) []byte {
	return mem.Ethernet(dst, src, 0x88b5, []byte(text)) // local experimental (IEEE 802)
}
