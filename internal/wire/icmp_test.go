package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestPutICMP(t *testing.T) {
	b := []byte{9, 9, 9, 9, 9, 9, 9, 9, 'b', 'o', 'd'}
	PutICMP(b, ICMPUnreachable, ICMPFragNeeded, 1450, 0)
	if !bytes.Equal(b[:2], []byte{3, 4}) || !bytes.Equal(b[4:], []byte{0, 0, 1450 >> 8, 1450 & 255, 'b', 'o', 'd'}) {
		t.Errorf("% x", b)
	}
	if c := binary.BigEndian.Uint16(b[2:]); !same(c, reference(append([]byte{3, 4, 0, 0}, b[4:]...))) {
		t.Errorf("checksum %#x", c)
	}
	const pseudo = 0x1234
	PutICMP(b, ICMPv6Echo, 0, 0, pseudo)
	if Fold(Sum(b, pseudo)) != 0xffff {
		t.Errorf("% x", b)
	}
}

func TestICMPErrors(t *testing.T) {
	for typ := range 256 {
		v4 := typ == 3 || typ == 4 || typ == 5 || typ == 11 || typ == 12
		if got := ICMPIsError(uint8(typ)); got != v4 {
			t.Errorf("ICMP %d: %v", typ, got)
		}
		if got := ICMPv6IsError(uint8(typ)); got != (typ < 128 || typ == 137) {
			t.Errorf("ICMPv6 %d: %v", typ, got)
		}
	}
}
