package bfd

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/bird"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// startBird starts BIRD with the contents of its protocol BFD, which begins sessions itself.
func startBird(t testing.TB, h *netns.Host, contents string) *bird.BIRD {
	t.Helper()
	return bird.Start(t, h, "router id 10.0.0.2;\nprotocol device { }\nprotocol bfd {\n"+contents+"\n}\n")
}

var birdSession = regexp.MustCompile(`(?m)^\s*(\S+)\s+\S+\s+(Up|Down|Init|AdminDown)\s+\S+\s+([\d.]+)\s+([\d.]+)`)

// birdSees returns the state, the interval and the detection time of a session, in seconds, as BIRD shows them.
func birdSees(b *bird.BIRD, peer string) (state, interval, timeout string) {
	for _, m := range birdSession.FindAllStringSubmatch(b.Do("show", "bfd", "sessions"), -1) {
		if m[1] == peer {
			return m[2], m[3], m[4]
		}
	}
	return "", "", ""
}

// ours is a Speaker with sockets in a host.
type ours struct {
	t testing.TB
	h *netns.Host
	s *Speaker
	u *UDP
	c chan Change
}

func newOurs(t testing.TB, h *netns.Host, c UDPConfig) *ours {
	t.Helper()
	c.Listen = func(network, address string) (pc net.PacketConn, err error) {
		h.Do(func() { pc, err = net.ListenPacket(network, address) })
		return pc, err
	}
	o := &ours{t: t, h: h, s: New(), c: make(chan Change, 1000)}
	var err error
	o.u, err = ListenUDP(o.s, &c)
	must(t, err)
	t.Cleanup(func() {
		must(t, o.s.Close())
		must(t, o.u.Close())
	})
	return o
}

// add begins a session.
func (o *ours) add(local, remote string, multihop bool, c SessionConfig) Peer {
	o.t.Helper()
	var p Peer
	var err error
	o.h.Do(func() { p, err = o.u.Peer(netip.MustParseAddr(local), netip.MustParseAddr(remote), multihop) })
	must(o.t, err)
	c.Notify = func(c Change) { o.c <- c }
	must(o.t, o.s.Add(p, &c))
	return p
}

// want waits for a change, whatever comes before: on a busy machine a session may go down by itself and come back.
func (o *ours) want(s Status, d Diag) Change {
	o.t.Helper()
	var seen []Change
	end := time.After(netns.Timeout)
	for {
		select {
		case c := <-o.c:
			if c.Status == s && c.Diag == d {
				return c
			}
			seen = append(seen, c)
		case <-end:
			list, _ := o.s.Sessions()
			o.t.Fatalf("no change to %v, %v, but %+v; %+v; %+v", s, d, seen, list, o.s.Stats())
		}
	}
}

func (o *ours) session(p Peer) Session { return check.Must(o.s.Session(p))(o.t) }

// birdCase is a pair of hosts in one of the ways BFD runs between them.
type birdCase struct {
	name          string
	near, far     string // addresses on the link
	local, remote string // of the session
	multihop      bool
	bird          string // statement of the session
}

func birdCases() []birdCase {
	return []birdCase{
		{name: "IPv4", near: "10.0.0.1/24", far: "10.0.0.2/24", local: "10.0.0.1", remote: "10.0.0.2",
			bird: `neighbor 10.0.0.1 dev "eth0";`},
		{name: "IPv6", near: "fd00::1/64", far: "fd00::2/64", local: "fd00::1", remote: "fd00::2",
			bird: `neighbor fd00::1 dev "eth0";`},
		{name: "link-local", near: "fe80::1/64", far: "fe80::2/64", local: "fe80::1%eth0", remote: "fe80::2%eth0",
			bird: `neighbor fe80::1 dev "eth0";`},
	}
}

// timers of BIRD: faster than ours one way, slower the other.
const birdTimers = `interface "*" { min rx interval 200 ms; min tx interval 100 ms; idle tx interval 1000 ms; multiplier 5; };
multihop { min rx interval 200 ms; min tx interval 100 ms; idle tx interval 1000 ms; multiplier 5; };
`

// BIRD and ours: up, timers as agreed, a cut path and its return, an operator's command, a restart.
func TestBIRD(t *testing.T) {
	for _, c := range birdCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := netns.New(t)
			a, b := n.Host("a"), n.Host("b")
			n.Link(a, c.near, b, c.far)
			a.Ready()
			b.Ready()
			againstBIRD(t, a, b, c)
		})
	}
	t.Run("multihop", func(t *testing.T) {
		t.Parallel()
		n := netns.New(t)
		a, r, b := n.Host("a"), n.Router("r"), n.Host("b")
		n.Link(a, "10.1.0.1/24", r, "10.1.0.254/24")
		n.Link(r, "10.2.0.254/24", b, "10.2.0.2/24")
		a.Route("10.2.0.0/24", "via", "10.1.0.254")
		b.Route("10.1.0.0/24", "via", "10.2.0.254")
		againstBIRD(t, a, b, birdCase{local: "10.1.0.1", remote: "10.2.0.2", multihop: true,
			bird: "neighbor 10.1.0.1 local 10.2.0.2 multihop on;"})
	})
}

func againstBIRD(t *testing.T, a, b *netns.Host, c birdCase) {
	far := startBird(t, b, birdTimers+c.bird)
	o := newOurs(t, a, UDPConfig{Multihop: c.multihop})
	peer, _, _ := strings.Cut(c.local, "%")

	// Up: we send each 200 ms (BIRD's min RX), BIRD each 150 ms (ours).
	p := o.add(c.local, c.remote, c.multihop, SessionConfig{Interval: 150 * time.Millisecond, Multiplier: 4, Hold: 2 * time.Second})
	o.want(Alive, NoDiag)
	b.Until("BIRD has agreed", func() bool {
		s, i, d := birdSees(far, peer)
		return s == "Up" && i == "0.150" && d == "0.800"
	})
	b.Until("we have agreed", func() bool {
		s := o.session(p)
		return s.Interval == 200*time.Millisecond && s.Detection == 5*150*time.Millisecond
	})

	// Silence: no packet of BFD arrives here.
	cut := time.Now()
	port := p.dstPort()
	a.Run("nft", "add table inet t; add chain inet t in { type filter hook input priority 0; }; add rule inet t in udp dport "+fmt.Sprint(port)+" drop")
	dead := o.want(Dead, TimeExpired)
	t.Logf("dead %v after the cut began; the detection time is 750ms", dead.When.Sub(cut))
	b.Until("BIRD is told", func() bool { s, _, _ := birdSees(far, peer); return s == "Down" })
	a.Run("nft", "delete table inet t")
	alive := o.want(Alive, NoDiag)
	if s := o.session(p); s.State == Up && s.Since.Before(alive.When) && alive.When.Sub(s.Since) < 2*time.Second {
		t.Errorf("alive %v after it was up", alive.When.Sub(s.Since))
	}

	if !c.multihop && c.name != "link-local" {
		// The link itself; its addresses stay.
		a.Sysctl("net.ipv6.conf.eth0.keep_addr_on_down", "1")
		b.Sysctl("net.ipv6.conf.eth0.keep_addr_on_down", "1")
		b.IP("link", "set", "eth0", "down")
		o.want(Dead, TimeExpired)
		b.IP("link", "set", "eth0", "up")
		o.want(Alive, NoDiag)
	}

	// The operator of BIRD takes the session away: BIRD 2.0.12 says nothing then.
	far.Do("disable", "bfd1")
	o.want(Dead, TimeExpired)
	far.Do("enable", "bfd1")
	o.want(Alive, NoDiag)

	// Killed: it says nothing.
	far.Signal(syscall.SIGKILL)
	_ = far.Wait()
	o.want(Dead, TimeExpired)
	startBird(t, b, birdTimers+c.bird)
	o.want(Alive, NoDiag)

	// We go.
	must(t, o.s.Remove(p))
	if st := o.s.Stats(); st.Discarded.Total()-st.Discarded[UnknownSession]-st.Discarded[UnknownPeer] > 0 { // those may come now
		t.Errorf("%+v", st)
	}
}
