package gso

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A checksum is not finished in a field that somebody may have judged the packet by: one that
// is let in as for port 9 does not leave as for another.
func TestUnfinishedOverwritesNothing(t *testing.T) {
	arp := append(packet{}.bytes()[:12], append([]byte{8, 6}, make([]byte, 28)...)...)
	for name, k := range packets(100) {
		l3, l4 := k.l3(), k.l4()
		own := l4 + int(k.gso(0).CsumOffset)
		check := func(p []byte, at int) frame.Reason {
			start := min(at, l3)
			f := over(p, k.frameKind(), frame.GSO{Flags: frame.NeedsCsum, CsumStart: uint16(start), CsumOffset: uint16(at - start)})
			r := Check(f)
			var c Cutter
			if parts, _ := c.Cut(nil, nil, f); (len(parts) != 0) != (r == frame.NotDropped) {
				t.Fatalf("%s, checksum at %d: %v, and %d pieces", name, at, r, len(parts))
			}
			return r
		}
		p := k.bytes()
		end := l4 + 20
		if k.udp {
			end = l4 + 8
		}
		for at := range len(p) - 1 {
			want := frame.BadHeader
			if at == own || at >= end {
				want = frame.NotDropped
			}
			if r := check(p, at); r != want {
				t.Errorf("%s, checksum at %d, headers at %d and %d: %v, want %v", name, at, l3, l4, r, want)
			}
		}
		icmp := bytes.Clone(p)
		switch {
		case len(k.ipOptions) != 0:
			continue
		case k.v6:
			icmp[l3+6] = 58
		default:
			icmp[l3+9] = 1
		}
		if r := check(icmp, l4+2); r != frame.NotDropped {
			t.Errorf("%s, the checksum of ICMP: %v", name, r)
		}
		if r := check(icmp, len(p)-2); r != frame.BadHeader {
			t.Errorf("%s, at the end of an ICMP message: %v", name, r)
		}
	}
	f := over(arp, frame.Ethernet, frame.GSO{Flags: frame.NeedsCsum, CsumStart: 14, CsumOffset: 14})
	if r := Check(f); r != frame.BadHeader {
		t.Errorf("in the sender's address of ARP: %v", r)
	}
}
