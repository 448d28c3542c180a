package vswitch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// say is a stage that always says the same.
type say frame.Verdict

func (s say) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Verdict(s) }

// hider is a Hider.
type hider struct{ say }

func (hider) Hides() bool { return true }

// TestDecide is (tables, frame in) -> verdict. The segment has local ports a (1) and
// b (2), isolated ports i (3) and j (4), a tunnel t (5) and a hub h (6).
func TestDecide(t *testing.T) {
	var (
		macA, macB, macI, macJ  = mac(1), mac(2), mac(3), mac(4)
		macT, macT2, macH, macN = mac(5), mac(6), mac(7), mac(99)
		static, filtered, self  = mac(11), mac(12), mac(13)
		anycast, control        = mac(14), mac(15)
		group                   = frame.MAC{1, 0, 0x5e, 0, 0, 1}
		known                   = frame.MAC{1, 0, 0x5e, 0, 0, 2}
		bridge                  = frame.MAC{1, 0x80, 0xc2, 0, 0, 0xe}
	)
	big := make([]byte, 1501)
	arp := eth(frame.Broadcast, macA, typeARP)
	nd := eth(frame.MAC{0x33, 0x33}, macA, typeIPv6, append(append([]byte{0x60, 0, 0, 0, 0, 0, icmpv6}, make([]byte, 33)...), 135, 0)...)
	nd133, nd137, nd132, nd138 := ndType(nd, 133), ndType(nd, 137), ndType(nd, 132), ndType(nd, 138)
	neighbour := func(v *VSIConfig, _ *AttachConfig) { v.Slots.Neighbour = say(frame.Reply) }

	strip := func(v *VSIConfig, _ *AttachConfig) { v.InnerVLAN = VLANStrip }
	pass := func(v *VSIConfig, _ *AttachConfig) { v.InnerVLAN = VLANPass }
	hiding := func(v *VSIConfig, _ *AttachConfig) { v.Slots.Neighbour = hider{say(frame.Continue)} }
	locked := func(_ *VSIConfig, a *AttachConfig) { a.Locked = true }

	noFlow := map[string]error{ // of frames that are forwarded
		"group with an entry": ErrDropped, "hub peer to hub peer": ErrDropped,
	}
	for _, c := range []struct {
		name string
		from string // port, or tunnel/peer
		in   []byte
		set  func(v *VSIConfig, a *AttachConfig)
		want string
	}{
		{"known local", "a", eth(macB, macA, 0x800), nil, "forward 2"},
		{"known remote", "a", eth(macT, macA, 0x800), nil, "forward 5/1"},
		{"from tunnel to local", "t/1", eth(macB, macT, 0x800), nil, "forward 2"},
		{"unknown unicast", "a", eth(macN, macA, 0x800), nil, "flood"},
		{"broadcast", "a", eth(frame.Broadcast, macA, 0x800), nil, "flood"},
		{"multicast", "a", eth(group, macA, 0x800), nil, "flood"},
		{"group with an entry", "a", eth(known, macA, 0x800), nil, "forward 2"},
		{"to itself", "a", eth(macA, macA, 0x800), nil, "drop reflect"},
		{"to another on the same port", "a", eth(macA, mac(50), 0x800), nil, "drop reflect"},
		{"bridge group address", "a", eth(bridge, macA, 0x800), nil, "drop reserved-mac"},
		{"bridge group address, if set", "a", eth(bridge, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.ForwardBridgeGroup = true }, "flood"},

		{"13 bytes", "a", eth(macB, macA, 0x800)[:13], nil, "drop short"},
		{"empty", "a", nil, nil, "drop short"},
		{"source broadcast", "a", eth(macB, frame.Broadcast, 0x800), nil, "drop bad-source-mac"},
		{"source group", "a", eth(macB, group, 0x800), nil, "drop bad-source-mac"},
		{"source zero", "a", eth(macB, frame.MAC{}, 0x800), nil, "drop bad-source-mac"},
		{"short comes before source", "t/1", eth(macB, group, 0x800)[:12], nil, "drop short"},
		{"tag inside a tunnel", "t/1", eth(macB, macT, typeVLAN, 0, 7, 8, 0), nil, "drop inner-vlan"},
		{"service tag", "a", eth(macB, macA, typeQinQ, 0, 7, 8, 0), nil, "drop inner-vlan"},

		{"too many tags to strip", "t/1", eth(macB, macT, typeQinQ, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 8, 0), strip, "drop inner-vlan"},
		{"nothing behind a tag to strip", "t/1", eth(macB, macT, typeVLAN, 0, 7, 8), strip, "drop short"},
		{"nothing behind the second tag to strip", "t/1", eth(macB, macT, typeQinQ, 0, 7, 0x81, 0, 0, 7, 8), strip, "drop short"},
		{"tags to strip", "t/1", eth(macB, macT, typeQinQ, 0, 7, 0x81, 0, 0, 7, 8, 0), strip, "forward 2"},
		{"stripped to the gateway", "t/1", eth(self, macT, typeVLAN, 0, 7, 8, 0), func(v *VSIConfig, a *AttachConfig) {
			strip(v, a)
			v.Slots.Gateway = say(frame.Consume)
		}, "consume"},
		{"stripped ARP to the neighbour slot", "t/1", eth(frame.Broadcast, macT, typeVLAN, 0, 7, 8, 6), func(v *VSIConfig, a *AttachConfig) {
			strip(v, a)
			v.Slots.Neighbour = say(frame.Reply)
		}, "reply"},
		{"strip is not for ports", "a", eth(macB, macA, typeQinQ, 0, 7, 8, 0), strip, "drop inner-vlan"},
		{"a tag passes", "t/1", eth(macB, macT, typeVLAN, 0, 7, 8, 0), pass, "forward 2"},
		{"a service tag passes", "a", eth(macB, macA, typeQinQ, 0, 7, 8, 0), pass, "forward 2"},
		{"nothing behind a tag that passes", "a", eth(macB, macA, typeQinQ, 0, 7, 8), pass, "drop short"},
		{"bad source before a tag that passes", "t/1", eth(macB, group, typeVLAN, 0, 7, 8, 0), pass, "drop bad-source-mac"},
		{"tagged to the gateway", "a", eth(self, macA, typeVLAN, 0, 7, 8, 0), func(v *VSIConfig, a *AttachConfig) {
			pass(v, a)
			v.Slots.Gateway = say(frame.Consume)
		}, "drop inner-vlan"},
		{"tagged ARP not to the neighbour slot", "a", eth(frame.Broadcast, macA, typeVLAN, 0, 7, 8, 6), func(v *VSIConfig, a *AttachConfig) {
			pass(v, a)
			v.Slots.Neighbour = say(frame.Reply)
		}, "flood"},
		{"a tag on top of a port's MTU", "a", eth(macB, macA, typeVLAN, append([]byte{0, 7, 8, 0}, big[:1500]...)...), pass, "forward 2"},
		{"but one byte more", "a", eth(macB, macA, typeVLAN, append([]byte{0, 7, 8, 0}, big[:1501]...)...), pass, "drop too-big"},
		{"not on top of a tunnel's", "a", eth(macT, macA, typeVLAN, append([]byte{0, 7, 8, 0}, big[:1500]...)...), pass, "drop too-big"},

		{"locked, without an entry", "a", eth(macB, macN, 0x800), locked, "drop locked"},
		{"locked, learned here", "a", eth(macB, macA, 0x800), locked, "drop locked"},
		{"locked, static here", "b", eth(macA, static, 0x800), locked, "forward 1"},
		{"locked, of a control plane here", "b", eth(macA, control, 0x800), locked, "forward 1"},
		{"locked, static elsewhere", "a", eth(macB, static, 0x800), locked, "drop locked"},
		{"locked, of a control plane elsewhere", "a", eth(macB, control, 0x800), locked, "drop locked"},
		{"locked, filtered", "a", eth(macB, filtered, 0x800), locked, "drop filtered"},
		{"locked, our own", "a", eth(macB, self, 0x800), locked, "drop own-mac"},
		{"locked, and forwarded if pinned elsewhere", "a", eth(macB, static, 0x800), func(v *VSIConfig, a *AttachConfig) {
			locked(v, a)
			v.ForwardPinned = true
		}, "drop locked"},
		{"to a locked port", "b", eth(macA, macB, 0x800), nil, "forward 1"},
		{"a locked tunnel", "t/1", eth(macB, macT, 0x800), locked, "drop locked"},
		{"a locked tunnel, a peer without a number", "t/0", eth(macB, macT, 0x800), locked, "drop locked"},

		{"hidden, to a local host", "a", eth(macB, macA, 0x800), hiding, "forward 2"},
		{"hidden, to a remote host", "a", eth(macT, macA, 0x800), hiding, "drop not-gateway"},
		{"hidden, to a remote host behind a hub", "a", eth(macH, macA, 0x800), hiding, "drop not-gateway"},
		{"hidden, to nobody known", "a", eth(macN, macA, 0x800), hiding, "flood local"},
		{"hidden, to everybody", "a", eth(frame.Broadcast, macA, 0x800), hiding, "flood local"},
		{"hidden hosts hear of remote ones", "t/1", eth(frame.Broadcast, macT, 0x800), hiding, "flood"},
		{"hidden hosts hear from remote ones", "t/1", eth(macA, macT, 0x800), hiding, "forward 1"},
		{"hidden, but to the gateway", "a", eth(self, macA, 0x800), func(v *VSIConfig, a *AttachConfig) {
			hiding(v, a)
			v.Slots.Gateway = say(frame.Consume)
		}, "consume"},

		{"isolated to isolated", "i", eth(macJ, macI, 0x800), nil, "drop split-horizon"},
		{"isolated to other", "i", eth(macA, macI, 0x800), nil, "forward 1"},
		{"other to isolated", "a", eth(macI, macA, 0x800), nil, "forward 3"},
		{"tunnel peer to tunnel peer", "t/1", eth(macT2, macT, 0x800), nil, "drop split-horizon"},
		{"hub peer to hub peer", "h/2", eth(macH, mac(60), 0x800), nil, "forward 6/1"},
		{"hub peer to itself", "h/1", eth(macH, mac(60), 0x800), nil, "drop reflect"},
		{"hub to full mesh", "h/2", eth(macT, mac(60), 0x800), nil, "forward 5/1"},

		{"static from its place", "b", eth(macA, static, 0x800), nil, "forward 1"},
		{"static claimed elsewhere", "a", eth(macB, static, 0x800), nil, "drop mac-pinned"},
		{"static claimed elsewhere, forwarded if set", "a", eth(macB, static, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.ForwardPinned = true }, "forward 2"},
		{"static claimed where nothing is learned", "a", eth(macB, static, 0x800), func(_ *VSIConfig, a *AttachConfig) { a.NoLearn = true }, "drop mac-pinned"},
		{"control entry claimed from a tunnel", "t/1", eth(macB, control, 0x800), nil, "forward 2"},
		{"filtered source", "a", eth(macB, filtered, 0x800), nil, "drop filtered"},
		{"filtered source where nothing is learned", "a", eth(macB, filtered, 0x800), func(_ *VSIConfig, a *AttachConfig) { a.NoLearn = true }, "drop filtered"},
		{"filtered destination", "a", eth(filtered, macA, 0x800), nil, "drop filtered"},
		{"own MAC from a port", "a", eth(macB, self, 0x800), nil, "drop own-mac"},
		{"own MAC from a tunnel", "t/1", eth(macB, self, 0x800), nil, "drop own-mac"},
		{"anycast MAC from a tunnel", "t/1", eth(macB, anycast, 0x800), nil, "forward 2"},
		{"anycast MAC from a port", "a", eth(macB, anycast, 0x800), nil, "drop own-mac"},

		{"to the gateway, without one", "a", eth(self, macA, 0x800), nil, "drop no-route"},
		{"to the gateway", "a", eth(self, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.Slots.Gateway = say(frame.Reenter) }, "reenter"},
		{"IP without a gateway", "ip", []byte{0x45}, nil, "drop kind"},
		{"IP to the gateway", "ip", []byte{0x45}, func(v *VSIConfig, _ *AttachConfig) { v.Slots.Gateway = say(frame.Consume) }, "consume"},

		{"policy in", "a", eth(macB, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.Slots.Ingress = say(frame.Drop(frame.Policy)) }, "drop policy"},
		{"the attachment's own slot goes first", "a", eth(macB, macA, 0x800), func(v *VSIConfig, a *AttachConfig) {
			v.Slots.Ingress, a.Slots.Ingress = say(frame.Drop(frame.Policy)), say(frame.Drop(frame.Storm))
		}, "drop storm"},
		{"and the VSI's is asked behind it", "a", eth(macB, macA, 0x800), func(v *VSIConfig, a *AttachConfig) {
			v.Slots.Ingress, a.Slots.Ingress = say(frame.Drop(frame.Policy)), say(frame.Continue)
		}, "drop policy"},
		{"as in the slot Neighbour", "a", arp, func(v *VSIConfig, a *AttachConfig) {
			v.Slots.Neighbour, a.Slots.Neighbour = say(frame.Reply), say(frame.Continue)
		}, "reply"},
		{"chain", "a", eth(macB, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) {
			v.Slots.Ingress = Chain(say(frame.Continue), say(frame.Drop(frame.Storm)), say(frame.Drop(frame.Policy)))
		}, "drop storm"},
		{"shut", "a", eth(macB, macA, 0x800), func(_ *VSIConfig, a *AttachConfig) { a.Shut = true }, "drop port-down"},
		{"shut, whatever stages say", "a", eth(macB, macA, 0x800), func(_ *VSIConfig, a *AttachConfig) {
			a.Shut, a.Slots.Ingress = true, say(frame.FloodAll)
		}, "drop port-down"},
		{"malformed before policy", "a", eth(macB, group, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.Slots.Ingress = say(frame.Drop(frame.Policy)) }, "drop bad-source-mac"},
		{"ARP to the neighbour slot", "a", arp, func(v *VSIConfig, _ *AttachConfig) { v.Slots.Neighbour = say(frame.Reply) }, "reply"},
		{"ND to the neighbour slot", "a", nd, func(v *VSIConfig, _ *AttachConfig) { v.Slots.Neighbour = say(frame.FloodLocal) }, "flood local"},
		{"others not", "a", eth(macB, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.Slots.Neighbour = say(frame.Reply) }, "forward 2"},

		{"router solicitation to the neighbour slot", "a", nd133, neighbour, "reply"},
		{"redirect to the neighbour slot", "a", nd137, neighbour, "reply"},
		{"ICMPv6 132 not", "a", nd132, neighbour, "flood"},
		{"ICMPv6 138 not", "a", nd138, neighbour, "flood"},
		{"ND cut short behind its type", "a", nd[:55], neighbour, "reply"},
		{"ND cut short before its type", "a", nd[:54], neighbour, "flood"},
		{"ND in a first fragment to the neighbour slot", "a", inFragment(nd, 0, true), neighbour, "reply"},
		{"ND in an only fragment to the neighbour slot", "a", inFragment(nd, 0, false), neighbour, "reply"},
		{"what looks like ND in a later fragment not", "a", inFragment(nd, 1, true), neighbour, "flood"},
		{"nor in the last", "a", inFragment(nd, 0x1fff, false), neighbour, "flood"},
		{"a first fragment cut short before the type", "a", inFragment(nd, 0, true)[:62], neighbour, "flood"},
		{"a first fragment of another protocol", "a", inFragment(ndType(nd, 128), 0, true), neighbour, "flood"},
		{"the type of ND in UDP", "a", udpIn(nd), neighbour, "flood"},

		{"too long", "a", eth(macB, macA, 0x800, big...), nil, "drop too-big"},
		{"too long, with a stage", "a", eth(macB, macA, 0x800, big...), func(v *VSIConfig, _ *AttachConfig) { v.Slots.TooBig = say(frame.Reply) }, "reply"},
		{"just fits", "a", eth(macB, macA, 0x800, big[:1500]...), nil, "forward 2"},

		{"broadcast off", "a", eth(frame.Broadcast, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.NoFlood = Broadcast }, "drop broadcast-off"},
		{"multicast off", "a", eth(group, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.NoFlood = Multicast }, "drop multicast-off"},
		{"unknown unicast off", "a", eth(macN, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.NoFlood = UnknownUnicast }, "drop unknown-unicast-off"},
		{"one class off leaves the others", "a", eth(group, macA, 0x800), func(v *VSIConfig, _ *AttachConfig) { v.NoFlood = Broadcast | UnknownUnicast }, "flood"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := check.Must(New(nil))(t)
			defer s.Close()
			v := check.Must(s.VSI(100, nil))(t)
			ports := map[string]*Attachment{}
			var vc VSIConfig
			for _, p := range []struct {
				name string
				cfg  AttachConfig
			}{{"a", AttachConfig{}}, {"b", AttachConfig{}}, {"i", AttachConfig{Group: GroupIsolated}}, {"j", AttachConfig{Group: GroupIsolated}}, {"t", AttachConfig{}}, {"h", AttachConfig{Hub: true}}} {
				var port Port = newStub(p.name)
				tag := uint32(0)
				if p.name == "t" || p.name == "h" {
					port, tag = &stubTunnel{stub: newStub(p.name)}, 100
				}
				ports[p.name] = check.Must(v.AttachWith(port, tag, &p.cfg))(t)
			}
			name, peer := c.from, uint16(0)
			if i := strings.IndexByte(name, '/'); i > 0 {
				fmt.Sscan(name[i+1:], &peer)
				name = name[:i]
			}
			f := frame.Make(c.in)
			if name == "ip" {
				name, f.Kind = "a", frame.IPv4
			}
			if c.set != nil {
				cfg := ports[name].cfg
				c.set(&vc, &cfg)
				for _, err := range []error{v.Configure(vc), ports[name].Configure(cfg)} {
					check.OK(t, err)
				}
			}
			for _, e := range []struct {
				mac frame.MAC
				d   frame.Dest
			}{{macA, ports["a"].Dest(0)}, {macB, ports["b"].Dest(0)}, {macI, ports["i"].Dest(0)}, {macJ, ports["j"].Dest(0)},
				{macT, ports["t"].Dest(1)}, {macT2, ports["t"].Dest(2)}, {macH, ports["h"].Dest(1)}} {
				v.fdb.Learn(e.mac, e.d, 0)
			}
			for _, e := range []struct {
				mac   frame.MAC
				d     frame.Dest
				flags fdb.Flags
			}{{static, ports["b"].Dest(0), fdb.Static}, {known, ports["b"].Dest(0), fdb.Static}, {filtered, 0, fdb.Filter},
				{self, 0, fdb.Static}, {anycast, 0, fdb.Anycast}, {control, ports["b"].Dest(0), fdb.Control}} {
				check.OK(t, v.fdb.Set(e.mac, e.d, e.flags))
			}
			in := ports[name]
			f.From, f.Tunnel, f.VNI = in.Dest(peer), in.port.tunnel != nil, 100
			circuit, _ := in.port.circuits.Load(tagKey(in.tag))
			var flow Flow
			none := ErrUnknownMAC
			if len(c.in) >= ethLen && binary.BigEndian.Uint16(c.in[12:]) == 0x800 && f.Kind == frame.Ethernet {
				flow, none = s.Flow(Pair{From: f.From, Tag: in.tag, Src: frame.MAC(c.in[6:]), Dst: frame.MAC(c.in)})
			}
			got, _ := circuit.decide(&f, &frame.At{})
			if got.String() != c.want {
				t.Errorf("%v, want %s", got, c.want)
			}
			if none == nil && got != frame.Forward(flow.To) && len(c.in) <= flow.MTU {
				t.Errorf("%v, but the flow goes to %v", got, flow.To)
			}
			if none != nil && got.Action() == frame.ActForward && none != ErrUnknownMAC && noFlow[c.name] != none {
				t.Errorf("no flow: %v, want %v", none, noFlow[c.name])
			}
		})
	}
}

// ndType returns an ICMPv6 frame with another type.
func ndType(nd []byte, typ byte) []byte {
	b := bytes.Clone(nd)
	b[ethLen+40] = typ
	return b
}

func udpIn(nd []byte) []byte {
	b := bytes.Clone(nd)
	b[ethLen+6] = 17
	return b
}

// inFragment puts a fragment header (RFC 8200, section 4.5) before the message, at an
// offset in units of 8 bytes.
func inFragment(nd []byte, offset uint16, more bool) []byte {
	h := make([]byte, 8)
	h[0] = icmpv6
	w := offset << 3
	if more {
		w |= 1
	}
	binary.BigEndian.PutUint16(h[2:], w)
	b := slices.Concat(nd[:ethLen+40], h, nd[ethLen+40:])
	b[ethLen+6] = fragment
	return b
}

// A dropped frame teaches nothing, and neither does one where learning is off, from
// a peer without a number, or of the switch's own.
func TestDecideTeaches(t *testing.T) {
	for _, c := range []struct {
		name    string
		in      []byte
		from    frame.Dest
		tunnel  bool
		noLearn bool
		want    bool
	}{
		{"a good frame", eth(mac(2), mac(1), 0x800), frame.NewDest(1, 0), false, false, true},
		{"learning off", eth(mac(2), mac(1), 0x800), frame.NewDest(1, 0), false, true, false},
		{"peer without a number", eth(mac(2), mac(1), 0x800), frame.NewDest(2, 0), true, false, false},
		{"peer with a number", eth(mac(2), mac(1), 0x800), frame.NewDest(2, 1), true, false, true},
		{"tagged inside", eth(mac(2), mac(1), typeVLAN, 0, 1, 8, 0), frame.NewDest(2, 1), true, false, false},
		{"the switch's own", eth(mac(2), mac(1), 0x800), 0, false, false, false},
	} {
		s := check.Must(New(nil))(t)
		v := check.Must(s.VSI(7, nil))(t)
		check.Must(v.AttachWith(newStub("a"), 0, &AttachConfig{NoLearn: c.noLearn}))(t)
		check.Must(v.Attach(&stubTunnel{stub: newStub("t")}, 7))(t)
		f := frame.Make(c.in)
		f.From, f.Tunnel = c.from, c.tunnel
		circuit := v.view.Load().find(c.from.Port())
		if c.from == 0 {
			circuit = v.view.Load().own
		}
		circuit.decide(&f, &frame.At{})
		if _, ok := v.fdb.Lookup(mac(1)); ok != c.want {
			t.Errorf("%s: learned = %v", c.name, ok)
		}
		s.Close()
	}
}
