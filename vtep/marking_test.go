package vtep

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The TOS of a packet is that of its VNI, else of its peer, else of the tunnel. ECN stays what it is.
func TestMarkingOnSending(t *testing.T) {
	const other = vni + 1
	u := fake4()
	v := newVTEP(t, &Config{Header: Header{TOS: 0x20}}, u)
	flood(t, v, vni, at(1), at(2))
	flood(t, v, other, at(1))
	one, two := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	check.OK(t, v.SetPeers([]PeerConfig{{Address: at(2).Addr(), Header: Header{TOS: 0x40}}}))
	w := v.Writer(0)
	send := func(peer uint16, tag uint32, priority uint8, b []byte) (got []string) {
		t.Helper()
		f := frame.Make(b)
		f.Priority, u.sent = priority, nil
		check.OK(t, w.Write([]frame.Out{{F: &f, Peer: peer, Tag: tag}}))
		for _, s := range u.sent {
			got = append(got, fmt.Sprintf("%#x", s.tos))
		}
		return got
	}
	want := func(what string, got []string, want ...string) {
		t.Helper()
		check.Equal(t, what, fmt.Sprint(got), fmt.Sprint(want))
	}
	ip, six := ip4(0xb8|ect1, 64, true), ip6(0x68|ect0, 64)
	want("of the tunnel", send(one, vni, 5, ip), "0x21")
	want("of the peer", send(two, vni, 5, ip), "0x41")
	want("of both", send(0, vni, 5, ip), "0x21", "0x41")
	check.OK(t, v.SetMarking(vni, Marking{TOS: Inherit}))
	want("inherited", send(two, vni, 5, ip), "0xb9")
	want("inherited, IPv6", send(one, vni, 5, six), "0x6a")
	want("inherited, behind tags", send(one, vni, 5, tagged(ip, 0x88a8, 0x8100)), "0xb9")
	want("inherited, ARP", send(one, vni, 5, arp()), "0x0")
	want("inherited, flooded", send(0, vni, 5, ip), "0xb9", "0xb9")
	want("of another VNI", send(one, other, 5, ip), "0x21")
	check.OK(t, v.SetMarking(vni, Marking{TOS: FromPriority}))
	for p := range uint8(8) {
		want("by the priority", send(one, vni, p, ip), fmt.Sprintf("%#x", p<<5|ect1))
	}
	want("by the priority, ARP", send(one, vni, 7, arp()), "0xe0")
	check.OK(t, v.SetMarking(vni, Marking{TOS: TOSZero}))
	want("none", send(one, vni, 5, ip), "0x1")
	check.OK(t, v.SetMarking(vni, Marking{DSCP: DSCPInherit}))
	want("as the tunnel has it", send(one, vni, 5, ip), "0x21")
	check.OK(t, v.SetMarking(vni, Marking{TOS: Inherit}))
	want("inherited again", send(two, vni, 5, ip), "0xb9")
	check.OK(t, v.SetMarking(vni, Marking{}))
	want("no marking", send(two, vni, 5, ip), "0x41")
	check.Equal(t, "networks with a marking", v.marked.Load(), 0)
}

// RFC 2983, section 3.2: what becomes of the outer DSCP, in all modes.
func TestMarkingOnReceipt(t *testing.T) {
	for _, c := range []struct {
		tunnel, vni DSCP
		dscp        uint8 // of the inner packet
		priority    uint8
	}{
		{DSCPDefault, DSCPDefault, 0x48, 0}, {DSCPKeep, DSCPDefault, 0x48, 0}, {DSCPInherit, DSCPDefault, 0xa8, 0}, {DSCPPriority, DSCPDefault, 0x48, 5},
		{DSCPDefault, DSCPInherit, 0xa8, 0}, {DSCPInherit, DSCPKeep, 0x48, 0}, {DSCPInherit, DSCPPriority, 0x48, 5}, {DSCPPriority, DSCPInherit, 0xa8, 0},
	} {
		for name, make := range map[string]func(tos uint8) []byte{
			"IPv4":   func(tos uint8) []byte { return ip4(tos, 64, true) },
			"IPv6":   func(tos uint8) []byte { return ip6(tos, 64) },
			"tagged": func(tos uint8) []byte { return tagged(ip4(tos, 64, true), 0x8100, 0x88a8) },
			"ARP":    func(uint8) []byte { return arp() },
		} {
			for _, typ := range []encap.Type{encap.TypeVXLAN, encap.TypeGPE} {
				u := fake4()
				v := newVTEP(t, &Config{Type: typ, DSCP: c.tunnel}, u)
				check.OK(t, v.Control().Open(vni))
				check.OK(t, v.Control().Open(vni+1))
				check.OK(t, v.SetMarking(vni, Marking{DSCP: c.vni}))
				head := func(n frame.VNI, b []byte) []byte {
					b = vx(n, b)
					if typ == encap.TypeGPE {
						encap.PutGPE(b, n, frame.Ethernet, false)
					}
					return b
				}
				peer := endpoint(t, at(1))
				u.in = []packetIn{
					{src: peer, data: head(vni+1, make(0x48)), tos: 0xa8}, {src: peer, data: head(vni, make(0x48|ect0)), tos: 0xa8 | ce}, {src: peer, data: head(vni, make(0x48)), tos: 0xa8},
					{src: peer, data: head(vni, make(0x48|ect0)), tos: 0xa8},
				}
				b := frame.NewBatch(nil)
				check.OK(t, v.Readers()[0].Read(b))
				for i, ecn := range []uint8{1: ce, 2: notECT, 3: ect0} {
					if i == 0 {
						continue // of another VNI
					}
					if f := &b.Frames[i]; f.Drop != frame.NotDropped || f.Priority != c.priority || !bytes.Equal(f.Bytes(), make(c.dscp|ecn)) { // the checksum with it
						t.Errorf("%v, tunnel %v, VNI %v, %s: %v, priority %d, % x", typ, c.tunnel, c.vni, name, f.Drop, f.Priority, f.Bytes())
					}
				}
				want := make(0x48)
				if c.tunnel == DSCPInherit {
					want = make(0xa8)
				}
				if f := &b.Frames[0]; !bytes.Equal(f.Bytes(), want) {
					t.Errorf("%v, tunnel %v, VNI %v, %s: the other VNI: % x", typ, c.tunnel, c.vni, name, f.Bytes())
				}
			}
		}
	}
}

// IP in IP and FOU have one network, whose tag is 0.
func TestMarkingOfBareIP(t *testing.T) {
	u := &fake{local: at(0), mtu: 1500}
	v := newVTEP(t, &Config{Type: encap.TypeFOU}, u)
	check.OK(t, v.Control().Open(0))
	peer := addPeer(t, v, at(1))
	check.OK(t, v.SetMarking(0, Marking{TOS: 0x20, DSCP: DSCPInherit}))
	f := frame.Make(ip4(0x48, 64, true)[14:])
	f.Kind = frame.IPv4
	check.OK(t, v.Writer(0).Write([]frame.Out{{F: &f, Peer: peer}}))
	check.Equal(t, "TOS", u.sent[0].tos, 0x20)
	u.in = []packetIn{{src: endpoint(t, at(1)), data: ip4(0x48, 64, true)[14:], tos: 0xa8}}
	b := frame.NewBatch(nil)
	check.OK(t, v.Readers()[0].Read(b))
	check.True(t, bytes.Equal(b.Frames[0].Bytes(), ip4(0xa8, 64, true)[14:]), "% x", b.Frames[0].Bytes())
}

func TestMarkingErrors(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	check.ErrorHas(t, v.SetMarking(1<<24, Marking{}), "vtep: VNI 16777216")
	check.ErrorHas(t, v.SetMarking(1, Marking{TOS: 3}), "vtep: ", "Marking.TOS: 3: must be a multiple of 4")
	check.ErrorHas(t, v.SetMarking(1, Marking{TOS: -4}), "vtep: ", `Marking.TOS: -4: must be 0 to 252, "inherit", "priority" or "none"`)
	check.ErrorHas(t, v.SetMarking(1, Marking{DSCP: 4}), "vtep: ", "Marking.DSCP: 4: must be DSCPKeep, DSCPInherit or DSCPPriority")
	_, err := New(&Config{DSCP: 4}, fake4())
	check.ErrorHas(t, err, "vtep: ", "Config.DSCP: 4")
	check.Equal(t, "networks", v.networks.Len(), 0)
}

// A marking may be set before its VNI is open, and outlasts that.
func TestMarkingLasts(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	calls := 0
	defer v.Watch(func() { calls++ })()
	check.OK(t, v.SetMarking(vni, Marking{TOS: FromPriority, DSCP: DSCPPriority}))
	check.True(t, calls > 0, "a change of the marking is told to nobody")
	peer := addPeer(t, v, at(1))
	path := func() Path { return check.Must(v.Path(peer, vni))(t) }
	for range 2 {
		check.OK(t, v.Control().Open(vni))
		check.True(t, path().Header.TOS == FromPriority && path().DSCP == DSCPPriority, "%+v", path())
		v.Control().Shut(vni)
	}
	check.OK(t, v.SetMarking(vni, Marking{}))
	check.True(t, path().Header.TOS == TOSZero && path().DSCP == DSCPKeep, "%+v", path())
	check.Equal(t, "networks", v.networks.Len(), 0)
}
