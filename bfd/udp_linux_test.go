package bfd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// What is on the wire, as tshark reads it: ports, TTL, class and contents.
func TestUDPWire(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24,10.0.0.11/24,fd00::1/64", b, "10.0.0.2/24,fd00::2/64")
	a.Ready()
	b.Ready()
	c := b.Capture("eth0", "udp and (port 3784 or port 4784)")
	oa, ob := newOurs(t, a, UDPConfig{Multihop: true}), newOurs(t, b, UDPConfig{Multihop: true, Local: []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}})
	var sessions []Peer
	for _, s := range []struct {
		near, far string
		multihop  bool
	}{{"10.0.0.1", "10.0.0.2", false}, {"10.0.0.11", "10.0.0.2", false}, {"10.0.0.1", "10.0.0.2", true}, {"fd00::1", "fd00::2", false}} {
		sessions = append(sessions, oa.add(s.near, s.far, s.multihop, SessionConfig{Interval: 250 * time.Millisecond}))
		ob.add(s.far, s.near, s.multihop, SessionConfig{Interval: 250 * time.Millisecond})
	}
	for range sessions {
		oa.want(Alive, NoDiag)
		ob.want(Alive, NoDiag)
	}
	for _, p := range sessions {
		a.Until("timers", func() bool { return oa.session(p).Detection == 750*time.Millisecond })
	}
	from := map[string]map[string]bool{} // source ports of each session
	for _, f := range netns.Fields(t, c.Stop(), "", "ip.src", "ipv6.src", "ip.ttl", "ipv6.hlim", "ip.dsfield.dscp", "ipv6.tclass.dscp", "udp.srcport", "udp.dstport", "udp.checksum.status", "bfd.version", "bfd.message_length") {
		key := f[0] + f[1] + " " + f[7]
		check.Slice(t, key, []string{f[2] + f[3], f[4] + f[5], f[9], f[10]}, []string{"255", "48", "1", "24"})
		port, _ := strconv.Atoi(f[6])
		check.True(t, port >= 49152, "%s: source port %d", key, port)
		if from[key] == nil {
			from[key] = map[string]bool{}
		}
		from[key][f[6]] = true
	}
	check.True(t, len(from) >= 6, "senders: %v", from)
	for _, key := range []string{"10.0.0.1 3784", "10.0.0.11 3784", "10.0.0.1 4784", "fd00::1 3784"} {
		check.Equal(t, "source ports of "+key, len(from[key]), 1)
	}
	discarded := oa.s.Stats().Discarded
	check.Equal(t, "discarded", discarded.Total()-discarded[UnknownPeer], 0) // before the session was there
}

// A neighbour's packets count with TTL 255 only; those over several hops with any.
func TestUDPTTL(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24,fd00::1/64", b, "10.0.0.2/24,fd00::2/64")
	a.Ready()
	b.Ready()
	o := newOurs(t, a, UDPConfig{Multihop: true})
	for _, x := range []struct{ near, far string }{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		for _, multihop := range []bool{false, true} {
			p := o.add(x.near, x.far, multihop, SessionConfig{Passive: true})
			check.Equal(t, "from", o.session(p).Stats.Received, 0)
			var conn *net.UDPConn
			b.Do(func() {
				var err error
				conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Local, p.dstPort())))
				must(t, err)
			})
			defer conn.Close()
			for _, ttl := range []int{64, 254, 255} {
				if p.Local.Is4() {
					must(t, ipv4.NewConn(conn).SetTTL(ttl))
				} else {
					must(t, ipv6.NewConn(conn).SetHopLimit(ttl))
				}
				was, count := o.s.Stats(), o.session(p).Stats.Received
				check.Must(conn.Write((&Control{State: AdminDown, Multiplier: 1, My: 9}).Append(nil)))(t)
				a.Until("a packet", func() bool {
					is := o.s.Stats()
					return is.Received+is.Discarded.Total() > was.Received+was.Discarded.Total()
				})
				took := o.session(p).Stats.Received > count
				check.Equal(t, fmt.Sprint(p, " with TTL ", ttl), took, multihop || ttl == 255)
				check.Equal(t, "discarded for it", o.s.Stats().Discarded[BadTTL] > was.Discarded[BadTTL], !took)
			}
		}
	}
}

// A session whose address or interface is not there yet, or goes and comes back, sends as soon as it can, from its own port
// or, where somebody has that, from another.
func TestUDPComesBack(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	a.Ready()
	b.Ready()
	oa, ob := newOurs(t, a, UDPConfig{}), newOurs(t, b, UDPConfig{})
	ob.add("10.0.0.2", "10.0.0.9", false, SessionConfig{})
	p := oa.add("10.0.0.9", "10.0.0.2", false, SessionConfig{})
	a.Until("failures", func() bool { return oa.session(p).Stats.Failed > 0 })
	a.Until("its error", func() bool { return errors.Is(oa.session(p).SendError, syscall.EADDRNOTAVAIL) })
	a.Addr("eth0", "10.0.0.9/24")
	oa.want(Alive, NoDiag)
	a.Until("no error", func() bool { return oa.session(p).SendError == nil })
	a.IP("addr", "del", "10.0.0.9/24", "dev", "eth0")
	oa.want(Dead, TimeExpired)
	a.Addr("eth0", "10.0.0.9/24")
	oa.want(Alive, NoDiag)

	must(t, oa.s.Remove(p))
	a.Until("no sockets", func() bool {
		oa.u.mu.Lock()
		defer oa.u.mu.Unlock()
		return len(oa.u.socks) == 0
	})
	var taken *net.UDPConn
	a.Do(func() {
		var err error
		taken, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 50000})
		must(t, err)
	})
	defer taken.Close()
	conn := check.Must(oa.u.bind(&Packet{Peer: p, SrcPort: 50000, DstPort: Port}))(t)
	defer conn.Close()
	got := conn.LocalAddr().(*net.UDPAddr).Port
	check.True(t, got != 50000 && got >= MinSrcPort, "port %d", got)
}

func TestUDPSettings(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a := n.Host("a")
	o := newOurs(t, a, UDPConfig{})
	addr := netip.MustParseAddr
	a.Do(func() {
		_, err := o.u.Peer(addr("fe80::1"), addr("fe80::2"), false)
		check.ErrorHas(t, err, "bfd: Peer.Remote: fe80::2: must be an address with an interface of the host as its zone, as in fe80::2%eth0")
		_, err = o.u.Peer(addr("fe80::1"), addr("fe80::2%none"), false)
		check.ErrorHas(t, err, "bfd: Peer.Remote: fe80::2%none: must be")
		_, err = o.u.Peer(addr("10.0.0.1"), addr("10.0.0.2"), true)
		check.ErrorHas(t, err, "bfd: Peer.Multihop: needs UDPConfig.Multihop")
		p, err := o.u.Peer(addr("fe80::1%lo"), addr("fe80::2"), false)
		must(t, err)
		check.Equal(t, "peer", p.String(), "fe80::1%1 > fe80::2%1")
		p, err = o.u.Peer(addr("::ffff:10.0.0.1"), addr("10.0.0.2"), false)
		must(t, err)
		check.Equal(t, "peer", p.String(), "10.0.0.1 > 10.0.0.2")
		_, err = ListenUDP(o.s, nil)
		check.ErrorHas(t, err, "bfd: receive on 0.0.0.0:3784: ", "in use")
	})
	must(t, o.u.Close())
	check.ErrorIs(t, "Send", o.u.Send(&Packet{Peer: Peer{Local: addrA, Remote: addrB}}), net.ErrClosed)
}
