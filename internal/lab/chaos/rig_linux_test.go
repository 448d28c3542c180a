package chaos

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/carry"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

const (
	innerA = "192.168.7.1"
	innerB = "192.168.7.2"
	tapMAC = "02:00:00:00:aa:01"
	farMAC = "02:00:00:00:aa:02"
)

// family is the addresses of an underlay.
type family struct{ name, near, near2, far, bits string }

var families = []family{
	{"IPv4", "10.0.0.1", "10.0.0.11", "10.0.0.2", "/24"},
	{"IPv6", "fd00::1", "fd00::11", "fd00::2", "/64"},
}

// config is what a rig has otherwise than by default.
type config struct {
	udp  underlay.UDPConfig
	wrap func(p vswitch.Port) vswitch.Port // around the TAP
}

// A rig is a tunnel between our VTEP on a and the kernel's on b, with a stream each way
// between the hosts themselves, and a counter of VXLAN packets on either end of the wire.
// Everybody knows everybody's MAC, so that the streams are all there is.
//
//	 a                                                             b
//	stream -> tap0 -> switch -> VTEP -> UDP -> eth0 ====== eth0 -> vx0 -> stream
//	               <-        <-      <-      <-            eth0 <- vx0 <-
type rig struct {
	t    *testing.T
	fam  family
	n    *netns.Net
	a, b *netns.Host
	u    *underlay.UDP
	past underlay.Stats // of those before u
	v    *vtep.VTEP
	sw   *vswitch.Switch
	vsi  *vswitch.VSI
	tap  *port.Device
	ab   *stream
	ba   *stream

	carried func() int // frames that the kernel has sent to the tunnel; those of b have checksums, and come by the socket
	listen  func(at string) (*underlay.UDP, error)
	struck  struct{ a, b int } // how often the rules of a cause have matched
}

func newRig(t *testing.T, fam family, cfg config) *rig {
	t.Helper()
	n := netns.New(t)
	r := &rig{t: t, fam: fam, n: n, a: n.Host("a"), b: n.Host("b")}
	n.Link(r.a, fam.near+fam.bits, r.b, fam.far+fam.bits)
	for _, h := range []*netns.Host{r.a, r.b} {
		h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1") // of tap0 and vx0
		h.Sysctl("net.ipv6.conf.all.keep_addr_on_down", "1")
		h.Run("nft", `add table inet count; add chain inet count in { type filter hook prerouting priority -400; };
			add rule inet count in udp dport 4789 counter;
			add table arp quiet; add chain arp quiet out { type filter hook output priority 0; policy drop; }`)
	}
	r.start(cfg)
	r.b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: fam.far, Remote: fam.near, Args: []string{"nolearning"}})
	r.a.TxOff("eth0")
	r.b.SetMAC("vx0", farMAC)
	r.b.Addr("vx0", innerB+"/24")
	r.b.Neighbour("vx0", innerA, tapMAC)
	r.know()
	r.a.Ready()
	r.b.Ready()
	r.ab = newStream(t, r.a, innerA, r.b, innerB)
	r.ba = newStream(t, r.b, innerB, r.a, innerA)
	flows(t, 5*time.Second, r.ab, r.ba)
	return r
}

// start runs our end.
func (r *rig) start(cfg config) {
	t := r.t
	t.Helper()
	must := func(err error) {
		t.Helper()
		check.OK(t, err)
	}
	r.listen = func(at string) (*underlay.UDP, error) {
		return underlay.ListenUDP(netip.AddrPortFrom(netip.MustParseAddr(at), encap.VXLANPort), &cfg.udp)
	}
	var err error
	r.a.Do(func() { r.u, err = r.listen(r.fam.near) })
	must(err)
	r.v, err = vtep.New(nil, r.u)
	must(err)
	r.sw, err = vswitch.New(nil)
	must(err)
	done := make(chan error, 1)
	go func() { done <- r.sw.Run(context.Background()) }()
	t.Cleanup(func() {
		r.sw.Close()
		r.v.Close()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	r.a.Do(func() { r.carried = carry.On(t, r.sw) })
	r.vsi, err = r.sw.VSI(vni, nil)
	must(err)
	far, err := r.vsi.Attach(r.v, vni)
	must(err)
	must(r.v.SetFlood(vni, netip.AddrPortFrom(netip.MustParseAddr(r.fam.far), 0)))
	mac, _ := frame.ParseMAC(tapMAC)
	r.tap, err = port.OpenTAP("tap0", &port.DeviceConfig{MTU: 1400, MAC: mac, Namespace: r.a.NS})
	must(err)
	p := vswitch.Port(r.tap)
	if cfg.wrap != nil {
		p = cfg.wrap(p)
	}
	at, err := r.vsi.Attach(p, 0)
	must(err)
	must(r.vsi.FDB().Set(mac, at.Dest(0), 0))
	peer, err := r.v.AddPeer(netip.AddrPortFrom(netip.MustParseAddr(r.fam.far), 0))
	must(err)
	other, _ := frame.ParseMAC(farMAC)
	must(r.vsi.FDB().Set(other, far.Dest(peer), 0))
	r.a.Addr("tap0", innerA+"/24")
	r.a.Neighbour("tap0", innerB, farMAC)
}

// know tells both hosts each other's outer MAC.
func (r *rig) know() {
	r.t.Helper()
	r.a.Neighbour("eth0", r.fam.far, r.b.MAC("eth0"))
	r.b.Neighbour("eth0", r.fam.near, r.a.MAC("eth0"))
}

// counter returns the sum of the counters of a table of nftables, 0 without one.
func counter(t *testing.T, h *netns.Host, table string) (n int) {
	t.Helper()
	var list struct {
		Nftables []struct {
			Rule struct{ Expr []map[string]json.RawMessage }
		}
	}
	text, err := h.Try(t.Context(), "nft", append([]string{"-j", "list", "table"}, strings.Fields(table)...)...)
	if err != nil {
		return 0
	}
	check.OK(t, json.Unmarshal([]byte(text), &list))
	for _, x := range list.Nftables {
		for _, e := range x.Rule.Expr {
			var c struct{ Packets int }
			if x, ok := e["counter"]; ok && json.Unmarshal(x, &c) == nil {
				n += c.Packets
			}
		}
	}
	return n
}

func (r *rig) port(name string) vswitch.PortStats {
	r.t.Helper()
	for _, p := range r.sw.Stats().Ports {
		if p.Name == name {
			return p
		}
	}
	r.t.Fatalf("no port %s", name)
	return vswitch.PortStats{}
}

func total(d frame.Drops) (n int) {
	for _, k := range d.All() {
		n += int(k)
	}
	return n
}

// any is a number of frames that may be lost where no counter of ours can be.
const any = -1

// move gives our VTEP an underlay at another address.
func (r *rig) move(to string) error {
	u, err := r.listen(to)
	if err != nil {
		return err
	}
	if err := r.v.SetUnderlay(u); err != nil {
		u.Close()
		return err
	}
	r.past, r.u = r.stats(), u
	return nil
}

// stats returns what u has counted, and those before it.
func (r *rig) stats() underlay.Stats {
	st := r.u.Stats()
	st.RxDatagrams += r.past.RxDatagrams
	st.RxOverflow += r.past.RxOverflow
	st.TxDatagrams += r.past.TxDatagrams
	return st
}

// missing is where frames are that have left one place and not come to the next, other than
// those that our counters have; less than 0 where there are copies.
type missing struct {
	wireAB int // between our socket and b
	peerAB int // between b's wire and the stream
	wireBA int // between the stream of b and a's wire
	hostA  int // between a's wire and our socket
	guestA int // between the switch and a's stream
}

// books stops the streams and follows every frame of them, in both directions.
func (r *rig) books(want missing) {
	t := r.t
	t.Helper()
	r.ab.stop()
	r.ba.stop()
	quiet(r.ab, r.ba)
	sent := r.carried()
	st, tap, far := r.stats(), r.port("tap0"), r.port("vtep")
	sent += int(st.TxDatagrams)
	got := missing{
		wireAB: sent - counter(t, r.b, "inet count"),
		peerAB: counter(t, r.b, "inet count") - r.ab.got(),
		wireBA: int(r.ba.sent.Load()) - counter(t, r.a, "inet count"),
		hostA:  counter(t, r.a, "inet count") - int(st.RxDatagrams+st.RxOverflow),
		guestA: int(tap.Tx.Frames) - r.ba.got(),
	}
	t.Logf("a to b: sent %d, got %d; b to a: sent %d, got %d; missing %+v", r.ab.sent.Load(), r.ab.got(), r.ba.sent.Load(), r.ba.got(), got)
	for _, x := range []struct {
		what      string
		got, want int
	}{
		{"sent by a's stream, and read from the TAP or dropped by it", int(r.ab.sent.Load()), int(tap.Rx.Frames) + r.a.Counter("tap0", "tx_dropped")},
		{"read from the TAP, and given to the socket or dropped", int(tap.Rx.Frames), total(tap.RxDrops) + total(far.TxDrops) + int(far.Tx.Frames)},
		{"sent by the VTEP, and by the socket or the kernel", int(far.Tx.Frames), sent},
		{"received by the socket, and dropped or written to the TAP", int(st.RxDatagrams), total(far.RxDrops) + total(tap.TxDrops) + int(tap.Tx.Frames)},
	} {
		check.True(t, x.got == x.want, "%s: %d, but %d", x.what, x.got, x.want)
	}
	for _, x := range []struct {
		where     string
		got, want int
	}{
		{"on the wire to b", got.wireAB, want.wireAB}, {"in b", got.peerAB, want.peerAB}, {"on the wire to a", got.wireBA, want.wireBA},
		{"before our socket", got.hostA, want.hostA}, {"behind the TAP", got.guestA, want.guestA},
	} {
		if x.got != x.want && (x.want != any || x.got < 0) {
			t.Errorf("missing %s: %d, want %d", x.where, x.got, x.want)
		}
	}
	if t.Failed() {
		t.Logf("underlay %+v", st)
		for _, p := range []vswitch.PortStats{tap, far} {
			for reason, k := range (&p.RxDrops).All() {
				t.Logf("%s: %d in: %v", p.Name, k, reason)
			}
			for reason, k := range (&p.TxDrops).All() {
				t.Logf("%s: %d out: %v", p.Name, k, reason)
			}
		}
	}
}

// both runs a test over either address family.
func both(t *testing.T, f func(t *testing.T, fam family)) {
	for _, fam := range families {
		t.Run(fam.name, func(t *testing.T) { f(t, fam) })
	}
}

// dropsOut returns what the VTEP could not send, by reason.
func (r *rig) dropsOut() map[frame.Reason]uint64 {
	m := map[frame.Reason]uint64{}
	p := r.port("vtep")
	for reason, k := range p.TxDrops.All() {
		m[reason] = k
	}
	return m
}
