package offload

import (
	"context"
	"flag"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

var rounds = flag.Int("rounds", 4, "rounds of TestOldDecisions for each of its 25 changes; 400 take some minutes")

// An old is a switch with three TAPs and a tunnel to a peer. What somebody sends to macB as fast as he can arrives where somebody
// listens: by the old way, if there has been a change.
//
//	tapa, tapb, tapc -- segment -- VTEP -- eth0 of host h -- eth0 of host far, 192.0.2.2
type old struct {
	t      *testing.T
	h, far *netns.Host
	sw     *vswitch.Switch
	vsi    *vswitch.VSI
	table  *fdb.Table
	v      *vtep.VTEP
	peer   uint16
	taps   map[string]*port.Device
	at     map[string]*vswitch.Attachment // also of the tunnel: "peer"
	o      *Offload

	from, to string    // places
	dst      frame.MAC // of the frames
	filtered bool      // filters judge the frames, or a gateway routes them, so that flows are of tuples or addresses
	*sender
	heard  *listener
	device int // of the stream
}

// newOld returns one where frames go from a place to another, each of which is a TAP or "peer".
func newOld(t *testing.T, from, to string) *old {
	t.Helper()
	n := netns.New(t)
	x := &old{t: t, h: n.Host("h"), far: n.Host("far"), taps: map[string]*port.Device{}, at: map[string]*vswitch.Attachment{}, from: from, to: to, dst: macB}
	x.h.Quiet()
	x.far.Quiet()
	n.Link(x.h, "192.0.2.1/24", x.far, "192.0.2.2/24")
	x.h.Neighbour("eth0", "192.0.2.2", x.far.MAC("eth0"))
	for p := range 2 { // nobody answers that the port is closed
		netns.Open(t, x.far, func() (net.PacketConn, error) { return net.ListenUDP("udp4", &net.UDPAddr{Port: oldPort + p}) })
	}
	u := netns.Open(t, x.h, func() (*underlay.UDP, error) { return underlay.ListenUDP(netip.AddrPortFrom(addr(1), oldPort), nil) })
	x.v = check.Must(vtep.New(&vtep.Config{Peers: vtep.ListedOnly}, u))(t)
	x.sw = check.Must(vswitch.New(nil))(t)
	x.vsi = check.Must(x.sw.VSI(vni, &vswitch.VSIConfig{NoFlood: vswitch.UnknownUnicast}))(t)
	x.table = x.vsi.FDB()
	for _, name := range []string{"tapa", "tapb", "tapc"} {
		x.open(name)
	}
	x.at["peer"] = check.Must(x.vsi.Attach(x.v, vni))(t)
	x.addPeer()
	ended := make(chan error, 1)
	go func() { ended <- x.sw.Run(context.Background()) }()
	t.Cleanup(func() { x.sw.Close(); check.OK(t, <-ended) })
	x.o = netns.Open(t, x.h, func() (*Offload, error) { return New(x.sw, nil) })
	if from == "peer" {
		x.sender = startSender(t, x.far)
	} else {
		x.sender = startSender(t, x.h)
	}
	if to == "peer" {
		x.heard = listenOn(t, x.far, "eth0")
	} else {
		x.heard = listenOn(t, x.h, to)
	}
	x.look()
	return x
}

func (x *old) open(name string) {
	x.h.Do(func() { x.taps[name] = check.Must(port.OpenTAP(name, nil))(x.t) })
	x.at[name] = check.Must(x.vsi.Attach(x.taps[name], 0))(x.t)
}

// look finds the device that the stream leaves by.
func (x *old) look() {
	h, name := x.h, x.from
	if x.from == "peer" {
		h, name = x.far, "eth0"
	}
	h.Do(func() { x.device = check.Must(net.InterfaceByName(name))(x.t).Index })
}

func (x *old) addPeer() { x.peer = check.Must(x.v.AddPeer(netip.AddrPortFrom(addr(2), 0)))(x.t) }

// dest returns where a place is.
func (x *old) dest(place string) frame.Dest {
	if place == "peer" {
		return x.at[place].Dest(x.peer)
	}
	return x.at[place].Dest(0)
}

// send sends frames from src from now on.
func (x *old) send(src frame.MAC) {
	s := &stream{frame: numbered(src, x.dst, 0), to: &unix.SockaddrLinklayer{Ifindex: x.device}}
	if x.from == "peer" {
		eth0 := 0
		x.h.Do(func() {
			eth0 = check.Must(net.InterfaceByName("eth0"))(x.t).Index
			s.frame = outer(x.t, encap.TypeVXLAN, vswitch.Pair{From: frame.NewDest(1, 1), Tag: vni}, s.frame, eth0)
		})
	}
	s.number = s.frame[len(s.frame)-8:]
	x.now.Store(s)
}

// carried reports whether frames from src are.
func (x *old) carried(src frame.MAC) bool {
	for e := range x.o.Flows() {
		if e.Src == src && e.Dst == x.dst && e.Valid && e.Carried.Frames > 0 && e.To == x.dest(x.to) && e.Tuple.Src.IsValid() == x.filtered {
			return true
		}
	}
	return false
}

// A change is one after which no frame goes the old way.
type change struct {
	name    string
	do      func(x *old, src frame.MAC) // followed by Settle
	undo    func(x *old)
	learned bool // macB is, instead of a static entry
	seen    bool // by a Tap: frames go the old way, but not unseen
	silent  bool // nobody can send meanwhile
}

// drops is a stage that drops every frame.
type drops struct{}

func (drops) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Drop(frame.Policy) }

// anywhere is the changes for all places.
var anywhere = []change{
	{name: "moved", do: func(x *old, _ frame.MAC) { check.OK(x.t, x.table.Set(macB, x.dest("tapc"), fdb.Static)) }},
	{name: "deleted", do: func(x *old, _ frame.MAC) { x.table.Delete(macB) }},
	{name: "source filtered", do: func(x *old, src frame.MAC) { check.OK(x.t, x.table.Set(src, 0, fdb.Filter)) }},
	{name: "flush of the segment", learned: true, do: func(x *old, _ frame.MAC) { x.vsi.Flush() }},
	{name: "policy", do: func(x *old, _ frame.MAC) {
		check.OK(x.t, x.at[x.from].Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: drops{}}}))
	}, undo: func(x *old) { check.OK(x.t, x.at[x.from].Configure(vswitch.AttachConfig{})) }},
	{name: "capture on", seen: true, undo: func(x *old) { x.sw.SetTap(nil) }},
}

// TestOldDecisions: somebody sends to macB as fast as he can. After each call that changes where macB is, or whether he may reach it, no
// frame goes the old way that was sent after the call had returned, and after a Tap is there none that it has not seen.
func TestOldDecisions(t *testing.T) {
	isolate := func(x *old, cfg vswitch.AttachConfig) {
		check.OK(x.t, x.at["tapa"].Configure(cfg))
		check.OK(x.t, x.at["tapb"].Configure(cfg))
	}
	for _, w := range []struct {
		from, to string
		changes  []change
	}{
		{"tapa", "tapb", []change{
			{name: "filter", do: func(x *old, _ frame.MAC) { check.OK(x.t, x.table.Set(macB, 0, fdb.Filter)) }},
			{name: "flush of the port", learned: true, do: func(x *old, _ frame.MAC) { check.OK(x.t, x.sw.FlushPort(x.taps["tapb"])) }},
			{name: "isolated", do: func(x *old, _ frame.MAC) { isolate(x, vswitch.AttachConfig{Group: 2}) }, undo: func(x *old) { isolate(x, vswitch.AttachConfig{}) }},
			{name: "detach of the source", silent: true, do: func(x *old, _ frame.MAC) { check.OK(x.t, x.at["tapa"].Detach()) },
				undo: func(x *old) { x.open("tapa"); x.look() }},
		}},
		{"tapa", "peer", []change{
			{name: "flush of the peer", learned: true, do: func(x *old, _ frame.MAC) { check.OK(x.t, x.sw.FlushPeer(x.dest("peer"))) }},
			{name: "port of the peer", do: func(x *old, _ frame.MAC) {
				check.OK(x.t, x.v.SetPeers([]vtep.PeerConfig{{Address: addr(2), Port: oldPort + 1}}))
			}, undo: func(x *old) { check.OK(x.t, x.v.SetPeers(nil)) }},
		}},
		{"peer", "tapb", []change{
			{name: "peer deleted", do: func(x *old, _ frame.MAC) { x.v.DeletePeer(x.peer) }, undo: (*old).addPeer},
		}},
	} {
		t.Run(w.from+" to "+w.to, func(t *testing.T) {
			t.Parallel()
			newOld(t, w.from, w.to).rounds(slices.Concat(w.changes, anywhere))
		})
	}
}

// TestOldTuples is TestOldDecisions where filters judge the frames.
func TestOldTuples(t *testing.T) {
	x := newOld(t, "tapa", "tapb")
	x.filtered = true
	allow := &policy.Config{Stateless: true, Sets: map[string][]netip.Prefix{"s": nil}, Rules: []policy.Rule{{Action: policy.Deny, SrcSet: "s"}}}
	deny := &policy.Config{Stateless: true, Rules: []policy.Rule{{Action: policy.Deny, Protocol: 17, DstPorts: []policy.PortRange{policy.Port(9)}}}}
	track := *deny
	track.Stateless = false
	p, guard := check.Must(policy.New(allow))(t), check.Must(policy.NewGuard(nil))(t)
	sender := netip.MustParsePrefix("10.0.0.1/32")
	filter := func(x *old) {
		check.OK(t, x.at["tapa"].Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: vswitch.Chain(guard, p.Ingress())}}))
		check.OK(t, x.at["tapb"].Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Egress: p.Egress()}}))
	}
	filter(x)
	again := func(*old) { check.OK(t, p.Update(allow)) }
	x.rounds([]change{
		{name: "a rule", do: func(*old, frame.MAC) { check.OK(t, p.Update(deny)) }, undo: again},
		{name: "tracking of flows", do: func(*old, frame.MAC) { check.OK(t, p.Update(&track)) }, undo: again},
		{name: "a set", do: func(*old, frame.MAC) { check.OK(t, p.AddToSet("s", sender)) }, undo: func(*old) { check.OK(t, p.DeleteFromSet("s", sender)) }},
		{name: "a guard", do: func(*old, frame.MAC) { check.OK(t, guard.Update(&policy.GuardConfig{MACs: []frame.MAC{macB}})) }, undo: func(*old) { check.OK(t, guard.Update(nil)) }},
		{name: "another stage", do: func(x *old, _ frame.MAC) {
			check.OK(t, x.at["tapa"].Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: drops{}}}))
		}, undo: filter},
	})
}

// rounds makes each change as often as the flag says.
func (x *old) rounds(changes []change) {
	for i, c := range changes {
		begun, lost := time.Now(), x.heard.lost.Load()
		for round := range *rounds {
			x.round(&c, frame.MAC{2, 1, 0, byte(i), byte(round >> 8), byte(round)}, round)
		}
		x.t.Logf("%s: %d rounds in %v; the listener lost %d frames", c.name, *rounds, time.Since(begun).Round(time.Millisecond), x.heard.lost.Load()-lost)
	}
}

// round makes a change while frames from src are carried. Each has another source: what was refused after a change is not asked for
// again within a second.
func (x *old) round(c *change, src frame.MAC, number int) {
	x.t.Helper()
	bad := func(format string, args ...any) {
		x.t.Helper()
		x.t.Fatalf("%s, round %d: "+format, append([]any{c.name, number}, args...)...)
	}
	until := func(what string, ok func() bool) {
		x.t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(100 * time.Microsecond) {
			if time.Now().After(end) {
				bad("not %s: %+v", what, check.Must(x.o.Stats())(x.t))
			}
		}
	}
	if c.learned {
		x.table.Delete(macB)
		until("learned", func() bool { return x.table.Learn(macB, x.dest(x.to), x.sw.Tick()) != fdb.Busy })
	} else {
		check.OK(x.t, x.table.Set(macB, x.dest(x.to), fdb.Static))
	}
	x.send(src)
	until("carried", func() bool { return x.carried(src) })
	arrived, seen := newNumberSet(), newNumberSet()
	if c.seen {
		x.heard.all.Store(arrived)
		x.sw.SetTap(seen)
	} else {
		c.do(x, src)
	}
	x.sw.Settle()
	after := x.sent.Load()
	time.Sleep(2 * time.Millisecond)
	until("sent", func() bool { return c.silent || x.sent.Load() >= after+100 })
	if c.seen {
		until("received", func() bool { return len(arrived.after(after)) >= 10 })
		x.heard.all.Store(nil)
		for _, n := range arrived.after(after) {
			if !seen.has(n) {
				bad("frame %d came unseen, %d were sent when the call returned", n, after)
			}
		}
	} else if x.heard.upToDate(x.t); x.heard.last.Load() > after {
		bad("frame %d came the old way, %d were sent when the call returned", x.heard.last.Load(), after)
	}
	if c.undo != nil {
		c.undo(x)
	}
	x.table.Delete(src)
}
