package afpacket

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The neighbour is not known: the first packets wait, the others are lost as unresolved.
func TestUnresolved(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		p, b := v.packet(nil), v.udp(v.B, 2, nil)
		v.B.IP("link", "set", "eth0", "arp", "off") // deaf
		if v.IP6 {
			v.B.Run("nft", "add table ip6 f; add chain ip6 f i { type filter hook input priority 0; }; add rule ip6 f i icmpv6 type nd-neighbor-solicit drop")
		}
		run, want := runOf(50, 10, 3, 1, v.End(2))
		ds := []frame.Datagram{to("one", 1, v.End(2)), run, to("two", 1, v.End(2), v.End(2))}
		send(t, p, ds...)
		for i, lost := range []uint16{0, 1, 2} {
			if ds[i].Lost != lost || lost > 0 && ds[i].Drop != frame.Unresolved {
				t.Errorf("datagram %d: lost %d, %v", i, ds[i].Lost, ds[i].Drop)
			}
		}
		v.B.IP("link", "set", "eth0", "arp", "on")
		if v.IP6 {
			v.B.Run("nft", "delete table ip6 f")
		}
		if got := payloads(receive(t, b, 3)); !slices.Equal(got, []string{"one", want[0], want[1]}) {
			t.Errorf("%q", got)
		}
		fake.Until(t, "the hop is found", func() bool { return p.hops.byIPHas(v.End(2)) }) // what has waited leaves first
		send(t, p, to("three", 1, v.End(2)))
		if got := receive(t, b, 1)[0].Payload; got != "three" {
			t.Error(got)
		}
		if st := p.Stats(); st.TxDatagrams != 4 || st.TxLost[frame.Unresolved] != 5 {
			t.Errorf("%+v", st)
		}
	})
}

// A next hop that is not there costs others nothing, and is found when it comes.
func TestAbsentHop(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		p, b := v.packet(nil), v.udp(v.B, 2, nil)
		warm(t, v, p, b)
		absent := v.End(77)
		v.A.Until("the hop is unreachable", func() bool {
			ds := []frame.Datagram{to("x", 1, absent, v.End(2))}
			send(t, p, ds...)
			receive(t, b, 1)
			return p.Stats().TxLost[frame.Unresolved] > 3
		})
		ds := []frame.Datagram{to("x", 1, absent)}
		v.A.Until("the hop rests", func() bool { send(t, p, ds...); return ds[0].Lost == 1 })
		if n := testing.AllocsPerRun(20, func() { p.Sender(0).Send(ds) }); n != 0 {
			t.Errorf("%v allocations for a packet to nobody", n)
		}
		v.B.Addr("eth0", v.At(77, 0).Addr().String()+map[bool]string{false: "/24", true: "/64"}[v.IP6])
		c := listenUDP(t, v.B, netip.AddrPortFrom(absent.AddrPort().Addr(), 4789), nil)
		v.A.Until("the hop is found", func() bool {
			ds := []frame.Datagram{to("found", 1, absent)}
			send(t, p, ds...)
			return p.hops.byIPHas(absent)
		})
		for got := ""; got != "found"; {
			for _, r := range read(t, c) {
				got = r.Payload // behind what has waited
			}
		}
	})
}

func (t *hops) byIPHas(e frame.Endpoint) bool {
	h, ok := t.byIP.Load(hopKey(e.IP))
	return ok && h.mac.Load() != 0
}

// The underlay answers for its address while the host does not have it, and not otherwise;
// probes too. Another's address it leaves alone.
func TestAnswers(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		mac := frame.MAC{2, 1, 2, 3, 4, 5}
		c := v.B.Capture("eth0", "arp or icmp6")
		v.packet(&Config{MAC: mac})
		us, other := v.At(1, 0).Addr().String(), v.At(55, 0).Addr().String()
		lladdr := func(ip string) string {
			for _, n := range v.B.Neighbours("eth0") {
				if n.Addr.String() == ip {
					return n.MAC
				}
			}
			return ""
		}
		// The kernel asks before it sends.
		ask := func(ip string) {
			v.B.Do(func() {
				k, err := net.Dial("udp", net.JoinHostPort(ip, "9"))
				must(t, err)
				k.Write([]byte("x"))
				k.Close()
			})
		}
		ask(us)
		ask(other)
		v.B.Until("our answer", func() bool { return lladdr(us) == mac.String() })
		if l := lladdr(other); l != "" {
			t.Errorf("%s is at %s", other, l)
		}
		field, value := "arp.isgratuitous", "1"
		if v.IP6 {
			field, value = "icmpv6.nd.na.flag.s", "0"
		}
		announced := false
		for _, r := range netns.Fields(t, c.Stop(), "", "eth.src", field) {
			announced = announced || r[0] == mac.String() && (r[1] == value || r[1] == "True" && value == "1" || r[1] == "False" && value == "0")
		}
		if !announced {
			t.Error("no announcement")
		}

		// Now the host has it: nobody but its stack answers.
		v.A.Addr("eth0", us+map[bool]string{false: "/24", true: "/64"}[v.IP6])
		time.Sleep(ownAge + 100*time.Millisecond)
		v.B.IP("neigh", "flush", "dev", "eth0")
		ask(us)
		v.B.Until("the host's answer", func() bool { return lladdr(us) == v.A.MAC("eth0") })
	})
}

// A neighbour announces that it has another MAC; somebody else says the same from a MAC that
// is not his to tell, and about somebody nobody asked for.
func TestAnnouncements(t *testing.T) {
	v := newVeth(t, false)
	p, b := v.packet(nil), v.udp(v.B, 2, nil)
	warm(t, v, p, b)
	mac := func() frame.MAC {
		h, _ := p.hops.byIP.Load(hopKey(v.End(2).IP))
		return frame.MACFrom(h.mac.Load())
	}
	was := mac()
	if was.String() != v.B.MAC("eth0") {
		t.Errorf("MAC %v", was)
	}
	lie := messenger{is4: true, mac: newMAC, ip: v.End(2).IP}
	spoof := lie.announcement()
	copy(spoof[6:], peerMAC[:]) // the frame comes from another
	stranger := messenger{is4: true, mac: newMAC, ip: v.End(99).IP}
	v.B.Inject("eth0", spoof, stranger.announcement(), stranger.question(hopKey(v.End(1).IP), frame.MAC{}))
	time.Sleep(50 * time.Millisecond)
	if mac() != was {
		t.Error("a lie was believed")
	}
	if p.hops.byIPHas(v.End(99)) {
		t.Error("a stranger was learned")
	}
	v.B.Inject("eth0", lie.announcement())
	v.A.Until("the announcement is believed", func() bool { return mac() == newMAC })
}

// What waits for a next hop is lost with Close, and nothing waits after it.
func TestCloseWhileUnresolved(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		p := v.packet(nil)
		nobody := v.End(77)
		ds := []frame.Datagram{to("x", 0, nobody), to("y", 0, nobody)}
		send(t, p, ds...)
		must(t, p.Close())
		for _, e := range []frame.Endpoint{nobody, v.End(78)} {
			ds[0].To = []frame.Endpoint{e}
			if err := p.Sender(0).Send(ds[:1]); !errors.Is(err, net.ErrClosed) || ds[0].Lost != 1 || ds[0].Drop != frame.PortDown {
				t.Errorf("%v, %d lost as %v", err, ds[0].Lost, ds[0].Drop)
			}
		}
		if st := p.Stats(); st.TxDatagrams != 0 || st.TxLost[frame.Unresolved] != 2 || st.TxLost[frame.PortDown] != 2 {
			t.Errorf("%+v", st)
		}
	})
}
