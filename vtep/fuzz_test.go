package vtep

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// understood is what the header of a packet says, as the draft of GPE and RFC 2003 have it,
// read by nobody of ours: the reason to drop it, or its kind and what is inside.
func understood(typ encap.Type, withoutP bool, kind frame.Kind, b []byte) (r frame.Reason, k frame.Kind, inner []byte, bum bool) {
	if typ == encap.TypeGPE {
		if len(b) < 8 {
			return frame.Short, 0, nil, false
		}
		protocol, known := map[byte]frame.Kind{1: frame.IPv4, 2: frame.IPv6, 3: frame.Ethernet}[b[3]]
		if b[0]&4 == 0 {
			protocol, known = frame.Ethernet, withoutP
		}
		vni := frame.VNI(binary.BigEndian.Uint32(b[4:]) >> 8)
		switch {
		case b[0]&0x30 != 0:
			return frame.GPEVersion, 0, nil, false
		case b[0]&8 == 0:
			return frame.NoVNIFlag, 0, nil, false
		case b[0]&1 != 0:
			return frame.GPEOAM, 0, nil, false
		case !known:
			return frame.GPEProtocol, 0, nil, false
		case vni != 100:
			return frame.UnknownVNI, 0, nil, false
		}
		kind, bum, b = protocol, b[0]&2 != 0, b[8:]
	}
	if kind == frame.Ethernet {
		if len(b) < 14 {
			return frame.Short, 0, nil, false
		}
		return frame.NotDropped, kind, b, bum
	}
	version, least, limit := byte(4), 20, 8
	if kind == frame.IPv6 {
		version, least, limit = 6, 40, 7
	}
	n := len(b)
	switch {
	case n == 0:
		return frame.Short, 0, nil, false
	case b[0]>>4 != version:
		return frame.BadHeader, 0, nil, false
	case n < least:
		return frame.Short, 0, nil, false
	case version == 6:
		n = 40 + int(binary.BigEndian.Uint16(b[4:]))
	default:
		if n = int(binary.BigEndian.Uint16(b[2:])); b[0]&15 < 5 || int(b[0]&15)*4 > n {
			return frame.BadHeader, 0, nil, false
		}
	}
	switch {
	case n > len(b):
		return frame.Short, 0, nil, false
	case b[limit] == 0:
		return frame.TTL, 0, nil, false
	}
	b = b[:n]
	return frame.NotDropped, kind, b, bum
}

// ecnOf is the ECN field of a packet, -1 if there is no IP header in it, behind two VLAN tags
// at most.
func ecnOf(kind frame.Kind, b []byte) int {
	if kind == frame.Ethernet {
		at := 12
		for tags := 0; tags < 2 && len(b) >= at+6 && (b[at] == 0x81 && b[at+1] == 0 || b[at] == 0x88 && b[at+1] == 0xa8); tags++ {
			at += 4
		}
		typ := binary.BigEndian.Uint16(b[at:])
		b = b[at+2:]
		if typ == 0x0800 {
			kind = frame.IPv4
		} else if typ == 0x86dd {
			kind = frame.IPv6
		}
	}
	switch {
	case kind == frame.IPv4 && len(b) >= 20 && b[0]>>4 == 4:
		return int(b[1] & 3)
	case kind == frame.IPv6 && len(b) >= 40 && b[0]>>4 == 6:
		return int(b[1] >> 4 & 3)
	}
	return -1
}

// FuzzUnwrap is FuzzReader for GPE and IP-in-IP: every packet is what its header says, or is
// dropped for the reason there is, and of what is let in only the ECN field changes, as the
// table of RFC 6040 says.
func FuzzUnwrap(f *testing.F) {
	for _, tos := range []uint8{0, 3} {
		f.Add(gpe(100, frame.Ethernet, true, inner(1)), uint8(0), tos)
		f.Add(gpe(100, frame.IPv4, false, bare4(1, 9, true).data), uint8(0), tos)
		f.Add(gpe(100, frame.IPv6, false, bare6(2, 9).data), uint8(1), tos)
		f.Add(bare4(2, 9, false).data, uint8(2), tos)
		f.Add(bare6(1, 9).data, uint8(6), tos)
	}
	f.Add([]byte{8, 0, 0, 0, 0, 0, 100, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, uint8(1), uint8(0))
	f.Add(gpe(100, frame.Ethernet, false, ip4(0, 9, true)), uint8(0), uint8(3))
	for _, k := range allLeft(9) {
		_, unfinished := k.packet(f)
		f.Add(gpe(100, k.kind(), false, append(unfinished, 1, 2, 3)), uint8(0), uint8(3))
		if k.bare {
			f.Add(unfinished, uint8(2|int(k.kind()-1)<<2), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, how, tos uint8) {
		cfg, said := &Config{Type: encap.TypeGPE, EthernetWithoutP: how&1 != 0}, frame.Ethernet
		var u Underlay
		fake := fake4()
		if u = fake; how&2 != 0 {
			cfg, said = &Config{Type: encap.TypeIPIP}, frame.Kind(1+how>>2&1)
			raw := raw4()
			raw.kinds = append(raw.kinds, said)
			u, fake = raw, raw.fake
		}
		v := newVTEP(t, cfg, u)
		tag, from := uint32(100), at(1)
		if cfg.Type == encap.TypeIPIP {
			tag, from = 0, host(from)
		}
		check.OK(t, v.Control().Open(tag))
		known := addPeer(t, v, from)
		fake.in = append(fake.in, packetIn{src: endpoint(t, from), data: bytes.Clone(data), tos: tos & 3})
		batch := frame.NewBatch(nil)
		check.OK(t, v.Readers()[0].Read(batch))
		x := &batch.Frames[0]
		drop, kind, in, bum := understood(cfg.Type, cfg.EthernetWithoutP, said, data)
		if drop != frame.NotDropped {
			check.Need(t, x.Drop == drop && x.From.Peer() == 0, "%v from %v, want %v", x.Drop, x.From, drop)
			return
		}
		was := ecnOf(kind, in)
		now := was
		if was >= 0 {
			now = [4][4]int{{0, 0, 0, -2}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}}[was][tos&3]
		}
		if x.Drop != frame.NotDropped {
			group := kind == frame.Ethernet && (in[6]&1 != 0 || bytes.Equal(in[6:12], make([]byte, 6)))
			if !(now == -2 && (x.Drop == frame.ECN || group && x.Drop == frame.BadSourceMAC)) {
				t.Fatalf("%v of % x, TOS %d", x.Drop, data, tos&3)
			}
			return
		}
		if x.GSO.Flags != 0 { // padding goes, and has no part in the checksum
			in = in[:min(len(in), x.Len())]
		}
		if x.Kind != kind || x.From.Peer() != known || x.Replicated != bum || uint32(x.VNI) != tag || !x.Tunnel || x.Len() != len(in) {
			t.Fatalf("%+v of % x", x, data)
		}
		if kind != frame.Ethernet && x.Headroom() < encap.EthernetLen {
			t.Fatalf("%d bytes in front", x.Headroom())
		}
		if got := ecnOf(kind, x.Bytes()); now >= 0 && got != now {
			t.Fatalf("ECN %d, outer %d, became %d, want %d", was, tos&3, got, now)
		}
		if was < 0 && !bytes.Equal(x.Bytes(), in) {
			t.Fatalf("% x became % x", in, x.Bytes())
		}
		if n := changed(x.Bytes(), in); now == was && n != 0 || n > 3 {
			t.Fatalf("%d bytes changed: % x became % x", n, in, x.Bytes())
		}
	})
}

// changed counts the bytes in which two packets of one length differ.
func changed(a, b []byte) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// FuzzQuoted: whatever an ICMP error says it is about, no peer's MTU leaves its bounds, a
// peer that it is not about keeps its own, and what is not ours changes nothing.
func FuzzQuoted(f *testing.F) {
	f.Add(vx(vni, nil), uint16(1400), uint8(1), uint8(0))
	f.Add(gpe(vni, frame.IPv4, false, nil), uint16(1400), uint8(1), uint8(1))
	f.Add(bare4(0, 9, true).data, uint16(68), uint8(1), uint8(2))
	f.Add([]byte{}, uint16(0), uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, quoted []byte, mtu uint16, who, typ uint8) {
		cfg := &Config{Type: encap.Type(typ % 3)}
		var u Underlay
		fake := fake4()
		var raw *rawFake
		peer := at
		if u = fake; cfg.Type == encap.TypeIPIP {
			raw = raw4()
			u, fake = raw, raw.fake
		}
		v := newVTEP(t, cfg, u)
		tag := uint32(vni)
		one, other := peer(1), peer(2)
		if raw != nil {
			tag, one, other = 0, host(one), host(other)
		}
		check.OK(t, v.Control().Open(tag))
		a, b := addPeer(t, v, one), addPeer(t, v, other)
		most := v.MTU(0)
		to := peer(int(who & 3))
		if raw != nil {
			to = host(to)
		}
		fake.path(endpoint(t, to), int(mtu), quoted)
		over := cfg.Type.Outer(false)
		ours := len(quoted) < cfg.Type.Header() || len(quoted) == 0
		if !ours {
			switch cfg.Type {
			case encap.TypeIPIP:
				ours = quoted[0]>>4 == 4 || quoted[0]>>4 == 6
			default:
				ours = quoted[0]&8 != 0 && frame.VNI(binary.BigEndian.Uint32(quoted[4:])>>8) == vni
			}
		}
		for n, num := range map[uint8]uint16{1: a, 2: b} {
			got := v.MTU(num)
			switch want := max(int(mtu), 576) - over; {
			case got == most:
			case who&3 != n || !ours || mtu == 0 || got != want || got > most:
				t.Fatalf("MTU to %d is %d of %d, after %d about % x to %d", n, got, most, mtu, quoted, who&3)
			}
		}
		if v.MTU(0) != most {
			t.Fatalf("MTU to all is %d of %d", v.MTU(0), most)
		}
		if raw != nil {
			raw.unreachable(endpoint(t, to), quoted)
			if v.Failed(a) && (who&3 != 1 || !ours) || v.Failed(b) && (who&3 != 2 || !ours) || v.Failed(a) || v.Failed(b) {
				t.Fatalf("failed, after % x to %d", quoted, who&3)
			}
		}
	})
}
