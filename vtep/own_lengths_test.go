package vtep

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// sized is an encapsulation whose headers differ in length: that of VNI 100+n has 4+n bytes. They have their length, the kind, and the
// VNI in one byte.
type sized int // of the longest that Put writes

func (s sized) Header() int { return int(s) }

func (s sized) Put(b []byte, p encap.Packet) (int, frame.Reason) {
	n := 4 + int(p.VNI) - 100
	copy(b[:n], []byte{byte(n), byte(p.Kind), byte(p.VNI), 0xff})
	return n, frame.NotDropped
}

func (s sized) Parse(b []byte) (p encap.Packet, n int, drop frame.Reason) {
	if len(b) < 4 || len(b) < int(b[0]) {
		return p, 0, frame.Short
	}
	if b[3] != 0xff {
		return p, 0, frame.BadHeader
	}
	return encap.Packet{VNI: frame.VNI(b[2]), Kind: frame.Kind(b[1])}, int(b[0]), frame.NotDropped
}

// Headers may have any lengths, odd ones among them, also in the packets of one run, and more than this end sends. The MTU is that of the longest.
func TestOwnLengths(t *testing.T) {
	a, b := fake4(), fake4()
	from, to := newVTEP(t, &Config{Own: sized(20)}, a), newVTEP(t, &Config{Own: sized(4)}, b)
	n := addPeer(t, from, at(1))
	check.Equal(t, "MTU", from.MTU(n), 1500-20-8-20)
	var outs []frame.Out
	for i := range 17 {
		check.OK(t, to.Control().Open(uint32(100+i)))
		f := frame.Make(inner(1)[:60-i]) // with its header as long as the others
		f.Hash = 1
		outs = append(outs, frame.Out{F: &f, Peer: n, Tag: uint32(100 + i)})
	}
	check.OK(t, from.Writer(0).Write(outs))
	check.Need(t, len(a.sent) == 1 && a.sent[0].seg == 64 && len(a.sent[0].payload) == 17*64, "%+v", a.sent)
	for i, o := range outs {
		f := b.hear(t, to.Readers()[0], at(9), a.sent[0].payload[64*i:64*i+64])[0]
		check.True(t, o.Drop == 0 && f.Drop == 0 && uint32(f.VNI) == o.Tag && bytes.Equal(f.Bytes(), o.F.Bytes()), "%d: %v %v %d bytes", i, o.Drop, f.Drop, f.Len())
	}
	st := to.Stats()
	check.True(t, len(st.Peers) == 1 && st.Peers[0].Rx == frame.Count{Frames: 17, Bytes: 17*60 - 16*17/2}, "%+v", st.Peers)

	outs[0].Tag = 117
	check.OK(t, from.Writer(0).Write(outs[:1]))
	check.True(t, outs[0].Drop == frame.BadHeader, "a header longer than the longest: %v", outs[0].Drop)
}

// A packet whose checksum a kernel's tunnel device has left unfinished is a superframe if it is longer than one packet can be behind its
// header, be that shorter or longer than those sent from here: a datagram that fits is not cut in two.
func TestOwnLengthsUnfinished(t *testing.T) {
	for _, ours := range []int{4, 40, 100} {
		for _, theirs := range []int{4, 40, 100} {
			u := fake4()
			v := newVTEP(t, &Config{Own: sized(ours)}, u)
			check.OK(t, v.Control().Open(vni))
			for _, more := range []int{0, 1} {
				k := left{udp: true, n: 1500 - 20 - 8 - theirs - 14 - 20 - 8 + more}
				finished, unfinished := k.packet(t)
				header := make([]byte, theirs)
				copy(header, []byte{byte(theirs), 0, vni, 0xff})
				f := u.hear(t, v.Readers()[0], at(1), append(header, unfinished...))[0]
				check.True(t, f.Drop == 0 && f.Len() == len(finished) && f.GSO.Flags == frame.NeedsCsum && (f.GSO.Type != 0) == (more != 0),
					"%d bytes of header sent, %d received: a packet of %d bytes is %v %+v", ours, theirs, 28+theirs+f.Len(), f.Drop, f.GSO)
			}
		}
	}
}

// What an ICMP error quotes is compared as far as it goes, behind short headers and in long ones.
func TestOwnLengthsQuoted(t *testing.T) {
	mine, other := []byte{30, 0, vni, 0xff}, []byte{30, 0, 99, 0xff}
	for quoted, want := range map[string]bool{
		"":                             true,
		string(mine[:3]):               true, // too little
		string(mine):                   true,
		string(append(mine, other...)): true,
		string(append(mine, make([]byte, 26)...)):  true,
		string(append(other, make([]byte, 26)...)): false,
		"\x04\x00\x63\xff":                         false, // of a VNI that is not here
		"\x04\x00\x64\xff":                         true,
		"\x04\x00\x64\xfe":                         false,
	} {
		u := fake4()
		v := newVTEP(t, &Config{Own: sized(200)}, u)
		check.OK(t, v.Control().Open(vni))
		n := addPeer(t, v, at(1))
		u.path(endpoint(t, at(1)), 1400, []byte(quoted))
		check.Equal(t, fmt.Sprintf("MTU after % x", quoted), v.MTU(n), map[bool]int{true: 1400, false: 1500}[want]-28-200)
	}
}
