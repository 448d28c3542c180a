package kernel

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/carry"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
	"github.com/vxswitch/vxswitch/vtep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(carry.Suite{M: m}) }

const (
	vni = 4100

	nearOuter = "02:00:00:00:01:01" // of the underlay devices
	farOuter  = "02:00:00:00:01:02"
	devMAC    = "02:00:00:00:aa:00" // of vx0 and the TAP
	nearInner = "02:00:00:00:aa:01" // of a host behind them
	farInner  = "02:00:00:00:bb:01" // of a host behind the peer
)

// family is the addresses of an underlay.
type family struct {
	name, near, far, bits string
	v6                    bool
}

var families = []family{
	{name: "IPv4", near: "10.0.0.1", far: "10.0.0.2", bits: "/24"},
	{name: "IPv6", near: "fd00::1", far: "fd00::2", bits: "/64", v6: true},
}

// inFamilies runs a test over each address family, overUnderlays over each underlay of ours.
func inFamilies(t *testing.T, f func(t *testing.T, fam family)) {
	for _, fam := range families {
		t.Run(fam.name, func(t *testing.T) { f(t, fam) })
	}
}

func overUnderlays(t *testing.T, f func(t *testing.T, x ourUnderlay)) {
	for _, x := range underlays {
		t.Run(x.name(), func(t *testing.T) { f(t, x) })
	}
}

// wantTTL fails the test unless a ping is answered with a TTL.
func wantTTL(t testing.TB, h *netns.Host, to string, ttl int) {
	t.Helper()
	check.Equal(t, "TTL from "+h.Name+" to "+to, h.PingTTL(to), ttl)
}

// settings are those of one pair of VTEPs, in both languages.
type settings struct {
	args   []string // words for "ip link add type vxlan"
	mask   *uint64  // reserved_bits, which iproute2 has no word for before 6.14: in the place of args
	header vtep.Header
	udp    underlay.UDPConfig
	packet *afpacket.Config // in the place of udp

	portable bool // underlay.Portable, with udp

	typ      encap.Type
	reserved vtep.Reserved
	gbp      bool
}

// underlays are ours, over both address families.
var underlays = func() (all []ourUnderlay) {
	for _, fam := range families {
		all = append(all, ourUnderlay{fam, false}, ourUnderlay{fam, true})
	}
	return all
}()

// ourUnderlay is UDP sockets, or packet sockets.
type ourUnderlay struct {
	fam    family
	packet bool
}

func (x ourUnderlay) name() string {
	if x.packet {
		return x.fam.name + "/Packet"
	}
	return x.fam.name
}

// with returns settings over the underlay: what they say of UDP sockets, said of it.
func (x ourUnderlay) with(s settings) settings {
	if x.packet {
		s.packet = &afpacket.Config{Device: "eth0", Checksum: s.udp.Checksum, SrcPorts: s.udp.SrcPorts}
	}
	return s
}

// side is a host with a VTEP, and what it is joined to: a host without addresses, which
// answers nothing.
type side struct {
	near, far *netns.Host
	dev       string         // where inner frames go in and come out
	wire      *netns.Capture // VXLAN packets on the underlay
	out       *netns.Capture // inner frames
}

// pair is the kernel's VTEP and ours, in the same place of two equal networks.
type pair struct {
	t            *testing.T
	fam          family
	kernel, ours *side
	*ourNode                              // of ours
	wrap         func(mark []byte) []byte // makes a packet of a mark that is for the near host
	marks        uint32
}

func newPair(t *testing.T, fam family, s settings) *pair {
	t.Helper()
	p := barePair(t, fam)
	if s.mask != nil {
		check.OK(t, addVXLAN(p.kernel.near, "vx0", fam.attributes(*s.mask)...))
	} else {
		args := []string{"link", "add", "vx0", "type", "vxlan", "id", fmt.Sprint(vni), "dstport", "4789",
			"local", fam.near, "remote", fam.far, "dev", "eth0"}
		p.kernel.near.IP(append(args, s.args...)...)
	}
	p.kernel.near.SetMAC("vx0", devMAC)
	if s.packet != nil {
		p.ours.resolve(fam)
	}
	p.ourNode = newNode(t, p.ours.near, fam.near, s)
	p.vsi(vni, fam.far)
	mac, _ := frame.ParseMAC(devMAC)
	p.tap(vni, p.ours.near, "tap0", mac)
	p.wrap = func(mark []byte) []byte {
		return fam.packet(outerIP{}, vxlan(append(ethernet(nearInner, farInner, 0x88b5), mark[14:]...)))
	}
	p.start()
	return p
}

// barePair is a pair without VTEPs.
func barePair(t *testing.T, fam family) *pair {
	t.Helper()
	n := netns.New(t)
	return &pair{t: t, fam: fam, kernel: newSide(n, fam, "k", "vx0"), ours: newSide(n, fam, "u", "tap0")}
}

// start waits until all carry packets, and captures them from then on.
func (p *pair) start() {
	p.t.Helper()
	p.kernel.near.Up("vx0")
	for _, x := range []*side{p.kernel, p.ours} {
		x.near.Ready()
		x.far.Ready()
		x.wire = x.near.Capture("eth0", "udp port 4789")
		x.out = x.near.Capture(x.dev, "")
	}
}

func newSide(n *netns.Net, fam family, name, dev string) *side {
	s := &side{near: n.Host(name), far: n.Host(name + "-far"), dev: dev}
	s.far.Quiet()
	n.Link(s.near, fam.near+fam.bits, s.far, "")
	s.near.SetMAC("eth0", nearOuter)
	s.far.SetMAC("eth0", farOuter)
	s.near.TxOff("eth0")
	s.near.Neighbour("eth0", fam.far, farOuter)
	s.near.Sysctl("net.ipv6.conf.default.disable_ipv6", "1") // of vx0 and the TAP
	return s
}

// resolve gives the far host its address, for an underlay that asks for its MAC. It answers
// nothing else: VXLAN packets are dropped.
func (s *side) resolve(fam family) {
	s.far.Sysctl("net.ipv6.conf.eth0.disable_ipv6", "0")
	s.far.Addr("eth0", fam.far+fam.bits)
	s.far.Run("nft", `add table inet silent; add chain inet silent in { type filter hook input priority 0; };
		add rule inet silent in udp dport 4789 drop`)
}

// send sends a frame into each device and returns what leaves on each underlay.
func (p *pair) send(inner []byte) (kernel, ours []outer) {
	p.t.Helper()
	get := func(s *side) (got []outer) {
		for _, b := range p.through(s.near, s.dev, s.wire, inner, func(mark []byte) []byte { return mark }) {
			got = append(got, parseOuter(p.t, b))
		}
		return got
	}
	return get(p.kernel), get(p.ours)
}

// receive sends a packet to each underlay and returns the frames that come out of
// each device.
func (p *pair) receive(packet []byte) (kernel, ours [][]byte) {
	p.t.Helper()
	get := func(s *side) [][]byte { return p.through(s.far, "eth0", s.out, packet, p.wrap) }
	return get(p.kernel), get(p.ours)
}

// through sends b out of a device and returns what a capture at the end of the way has
// seen of it. A marked frame behind it tells when that is over, and another, sent when
// the first has passed: frames that were read together may change places.
func (p *pair) through(h *netns.Host, dev string, c *netns.Capture, b []byte, wrap func([]byte) []byte) (got [][]byte) {
	p.t.Helper()
	from := len(c.Seen())
	isMark := func(x netns.Packet) bool { return strings.Contains(string(x.Data), markText) }
	for i := range 2 {
		mark := p.mark()
		send := [][]byte{wrap(mark)}
		if i == 0 {
			send = [][]byte{b, wrap(mark)}
		}
		h.Inject(dev, send...)
		c.Want(1, func(x netns.Packet) bool { return strings.Contains(string(x.Data), string(mark[14:])) })
	}
	for _, x := range c.Seen()[from:] {
		// What goes into the device is seen there too.
		if c == p.kernel.out || c == p.ours.out {
			if x.Out {
				continue
			}
		} else if !x.Out {
			continue
		}
		if !isMark(x) {
			got = append(got, x.Data)
		}
	}
	return got
}

const markText = "a mark of the test "

// mark makes a frame like no other, from the near host to the far one.
func (p *pair) mark() []byte {
	p.marks++
	f := append(ethernet(farInner, nearInner, 0x88b5), markText...)
	return binary.BigEndian.AppendUint32(f, p.marks)
}
