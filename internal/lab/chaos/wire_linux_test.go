package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay"
)

// A cause is what goes wrong for a while, and where the frames are that it costs.
type cause struct {
	name    string
	udp     underlay.UDPConfig
	begin   func(r *rig)
	end     func(r *rig)
	missing func(r *rig) missing // that no counter of ours has; nil = none
	reasons []frame.Reason       // why the VTEP may lose some; of the first there must be some
	hit     func(r *rig) bool    // whether it has struck, where that is not a reason
}

// rule adds a rule for VXLAN packets to a table of a host, which is named "chaos".
func rule(r *rig, h *netns.Host, family, chain, text string) {
	r.t.Helper()
	h.Run("nft", fmt.Sprintf("add table %[1]s chaos; add chain %[1]s chaos x { type filter hook %[2]s; }; add rule %[1]s chaos x udp dport 4789 %[3]s", family, chain, text))
}

// unrule ends the rules of a family and keeps what they have counted: they are passed by
// first, or some would strike after the counters were read.
func unrule(r *rig, family string) {
	r.t.Helper()
	for _, h := range []*netns.Host{r.a, r.b} {
		_, _ = h.Try(r.t.Context(), "nft", "insert rule "+family+" chaos x accept")
	}
	r.struck.a, r.struck.b = counter(r.t, r.a, family+" chaos"), counter(r.t, r.b, family+" chaos")
	for _, h := range []*netns.Host{r.a, r.b} {
		_, _ = h.Try(r.t.Context(), "nft", "delete table "+family+" chaos")
	}
}

func (r *rig) v6() bool { return r.fam.bits == "/64" }

// ip is the name of the family in nftables.
func (r *rig) ip() string {
	if r.v6() {
		return "ip6"
	}
	return "ip"
}

// noPorts is how many packets have found no socket in a host.
func (r *rig) noPorts(h *netns.Host) int {
	if r.v6() {
		return h.Nstat()["Udp6NoPorts"]
	}
	return h.Nstat()["UdpNoPorts"]
}

// onWire: what is just past a host's counter when a link goes is lost in that host.
var onWire = func(*rig) missing { return missing{wireAB: any, peerAB: any, wireBA: any, hostA: any} }

var causes = []cause{
	{
		name: "loss",
		begin: func(r *rig) {
			rule(r, r.a, "inet", "input priority 0", "numgen random mod 10 0 counter drop")
			rule(r, r.b, "inet", "input priority 0", "numgen random mod 10 0 counter drop")
		},
		end:     func(r *rig) { unrule(r, "inet") },
		missing: func(r *rig) missing { return missing{peerAB: r.struck.b, hostA: r.struck.a} },
		hit:     func(r *rig) bool { return r.struck.a > 0 && r.struck.b > 0 },
	}, {
		name: "duplication",
		begin: func(r *rig) {
			rule(r, r.a, r.ip(), "output priority 0", "numgen random mod 4 0 counter dup to "+r.fam.far+" device eth0")
			rule(r, r.b, r.ip(), "output priority 0", "numgen random mod 4 0 counter dup to "+r.fam.near+" device eth0")
		},
		end:     func(r *rig) { unrule(r, r.ip()) },
		missing: func(r *rig) missing { return missing{wireAB: -int(r.ab.copies), wireBA: -int(r.ba.copies)} },
		hit:     func(r *rig) bool { return r.ab.copies > 0 && r.ba.copies > 0 },
	}, {
		// Two bytes of the innermost payload. The kernel's VTEP computes the outer checksum and
		// our socket tells; ours does over IPv6 only, and otherwise it is b that tells.
		name: "corruption",
		begin: func(r *rig) {
			at := 14 + 20 + 8 + 8 + 14 + 20 + 8 + 100
			if r.v6() {
				at += 20
			}
			text := fmt.Sprintf("numgen random mod 10 0 counter @ll,%d,16 set 0xa55a", 8*at)
			rule(r, r.a, "netdev", "ingress device eth0 priority 0", text)
			rule(r, r.b, "netdev", "ingress device eth0 priority 0", text)
		},
		end: func(r *rig) { unrule(r, "netdev") },
		missing: func(r *rig) missing {
			return missing{peerAB: r.struck.b}
		},
		hit: func(r *rig) bool {
			check.True(r.t, r.ab.bad+r.ba.bad <= 0, "garbage arrived: %d, %d", r.ab.bad, r.ba.bad)
			return r.struck.a > 0 && r.struck.b > 0 && int(r.u.Stats().RxOverflow) == r.struck.a
		},
	}, {
		name:  "link down",
		begin: func(r *rig) { r.a.IP("link", "set", "eth0", "down") },
		end: func(r *rig) {
			r.a.Up("eth0")
			r.know()
			r.a.Ready()
		},
		missing: onWire,
		reasons: []frame.Reason{frame.Unreachable},
	}, {
		// Sends fail with ENOBUFS until Linux (6.18) has looked at the link, which it does at
		// once or a second later; then the device takes everything, and counts what it drops.
		name:  "carrier lost",
		begin: func(r *rig) { r.b.IP("link", "set", "eth0", "down") },
		end: func(r *rig) {
			r.b.Up("eth0")
			r.know()
			r.a.Ready()
			r.b.Ready()
		},
		missing: onWire,
		reasons: []frame.Reason{0, frame.PortFull},
		hit: func(r *rig) bool {
			return r.dropsOut()[frame.PortFull] > 0 || r.a.Counter("eth0", "tx_dropped") > 0
		},
	}, {
		// Over IPv6 Linux 6.18 sends on from an address that is gone.
		name:  "address removed",
		begin: func(r *rig) { r.a.IP("addr", "del", r.fam.near+r.fam.bits, "dev", "eth0") },
		end: func(r *rig) {
			r.a.Addr("eth0", r.fam.near+r.fam.bits)
			r.know()
		},
		missing: func(r *rig) missing { return missing{wireAB: any, wireBA: any, hostA: any} },
		hit: func(r *rig) bool {
			return total(r.port("vtep").TxDrops) > 0 || counter(r.t, r.a, "inet count") > int(r.u.Stats().RxDatagrams)
		},
		reasons: []frame.Reason{0, frame.Unreachable, frame.SendFailed},
	}, {
		// What the peer sends to the old address finds no socket; what was in its buffer
		// when it was closed is a few at most. Not one of ours is lost.
		name: "another address",
		begin: func(r *rig) {
			r.a.Addr("eth0", r.fam.near2+r.fam.bits)
			r.b.Neighbour("eth0", r.fam.near2, r.a.MAC("eth0"))
			before := r.v.Stats()
			var err error
			if r.a.Do(func() { err = r.move(r.fam.near2) }); err != nil {
				r.t.Fatal(err)
			}
			if after := r.v.Stats(); len(before.Peers) != len(after.Peers) {
				r.t.Errorf("%d peers, there were %d", len(after.Peers), len(before.Peers))
			}
		},
		end: func(r *rig) {
			r.b.IP("link", "set", "vx0", "type", "vxlan", "id", fmt.Sprint(vni), "remote", r.fam.near2)
		},
		missing: func(r *rig) missing {
			st := r.stats()
			n := counter(r.t, r.a, "inet count") - int(st.RxDatagrams+st.RxOverflow)
			if none := r.noPorts(r.a); n < none || n > none+10 {
				r.t.Errorf("%d missing before our socket, %d found none", n, none)
			}
			return missing{hostA: n}
		},
		hit: func(r *rig) bool { return r.noPorts(r.a) > 0 },
	}, {
		name:  "device deleted",
		udp:   underlay.UDPConfig{Device: "eth0"},
		begin: func(r *rig) { r.a.IP("link", "del", "eth0") },
		end: func(r *rig) {
			r.a.IP("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", r.b.NS)
			r.a.Sysctl("net.ipv6.conf.eth0.disable_ipv6", "0")
			r.b.Sysctl("net.ipv6.conf.eth0.disable_ipv6", "0")
			r.a.Addr("eth0", r.fam.near+r.fam.bits)
			r.b.Addr("eth0", r.fam.far+r.fam.bits)
			for _, h := range []*netns.Host{r.a, r.b} {
				h.TxOff("eth0")
				h.Up("eth0")
			}
			r.know()
			r.a.Ready()
		},
		missing: func(r *rig) missing { return missing{wireAB: any, peerAB: any, wireBA: any, hostA: any} }, // the sockets follow
		// Between the removal of the two ends of a veth the kernel refuses a packet with ENOBUFS.
		reasons: []frame.Reason{frame.Unreachable, frame.PortFull},
	}, {
		name:    "output dropped",
		begin:   func(r *rig) { rule(r, r.a, "inet", "output priority 0", "counter drop") },
		end:     func(r *rig) { unrule(r, "inet") },
		reasons: []frame.Reason{frame.SendFailed},
	}, {
		name:    "output rejected",
		begin:   func(r *rig) { rule(r, r.a, "inet", "output priority 0", "counter reject") },
		end:     func(r *rig) { unrule(r, "inet") },
		reasons: []frame.Reason{frame.SendFailed, frame.Unreachable}, // the stack tells itself of some
	}, {
		// What waits in the queue when it is taken away is lost with it: 3000 bytes. While a queue
		// is put in place or taken away the device takes everything, and counts what it drops.
		// Of a run that is longer than the burst the queue may drop a part, and does not tell.
		name: "short queue",
		begin: func(r *rig) {
			r.a.Run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "200kbit", "burst", "3000", "limit", "3000")
		},
		end: func(r *rig) { r.a.Run("tc", "qdisc", "del", "dev", "eth0", "root") },
		missing: func(r *rig) missing {
			st, dropped := r.u.Stats(), r.a.Counter("eth0", "tx_dropped")
			n := int(st.TxDatagrams) - counter(r.t, r.b, "inet count")
			if n < dropped || n > dropped+12+int(st.TxSegments) {
				r.t.Errorf("%d are missing on the wire; the device has dropped %d, the queue had room for 10, and %d were in runs", n, dropped, st.TxSegments)
			}
			return missing{wireAB: n}
		},
		reasons: []frame.Reason{frame.PortFull},
	}, {
		name:  "peer away",
		begin: func(r *rig) { r.b.IP("link", "set", "vx0", "down") },
		end: func(r *rig) {
			r.b.Up("vx0")
			r.b.Neighbour("vx0", innerA, tapMAC)
		},
		missing: func(r *rig) missing {
			return missing{peerAB: any, wireBA: any}
		},
		hit: func(r *rig) bool { return r.noPorts(r.b) > 0 && r.u.Stats().Errors.Refused > 0 },
	}, {
		// A storm of errors about one direction costs neither direction anything.
		name: "peer rejects",
		begin: func(r *rig) {
			r.b.Sysctl("net.ipv4.icmp_ratelimit", "0")
			r.b.Sysctl("net.ipv6.icmp.ratelimit", "0")
			rule(r, r.b, "inet", "input priority 0", "counter reject")
		},
		end:     func(r *rig) { unrule(r, "inet") },
		missing: func(r *rig) missing { return missing{peerAB: r.struck.b} },
		hit: func(r *rig) bool {
			r.t.Logf("%d rejected, %+v", r.struck.b, r.u.Stats().Errors)
			return r.struck.b > 50 && r.u.Stats().Errors.Refused > uint64(r.struck.b)/2
		},
	},
}

// Whatever befalls the underlay of a tunnel to the kernel's VTEP: it goes on within a second,
// and no frame is missing without a trace.
func TestWire(t *testing.T) {
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, fam family) {
				r := newRig(t, fam, config{udp: c.udp})
				c.begin(r)
				suffer(t, r.ab, r.ba)
				c.end(r)
				flows(t, time.Second, r.ab, r.ba)
				var want missing
				if c.missing != nil {
					r.ab.stop()
					r.ba.stop()
					quiet(r.ab, r.ba)
					want = c.missing(r)
				}
				r.books(want)
				drops := r.dropsOut()
				for i, reason := range c.reasons {
					if i == 0 && reason != 0 && drops[reason] == 0 {
						t.Errorf("the VTEP has lost nothing as %v: %v", reason, drops)
					}
					delete(drops, reason)
				}
				check.True(t, len(drops) == 0, "the VTEP has lost others: %v", drops)
				if c.hit != nil && !c.hit(r) {
					t.Error("nothing was hit")
				}
			})
		})
	}
}
