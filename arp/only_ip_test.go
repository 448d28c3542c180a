package arp

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Every EtherType, and what has none.
func TestOnlyIP(t *testing.T) {
	b := make([]byte, 60)
	passed := 0
	for typ := range 1 << 16 {
		b[12], b[13] = byte(typ>>8), byte(typ)
		f := frame.Over(b, 0, len(b))
		want := frame.Drop(frame.EtherType)
		if typ == 0x0800 || typ == 0x0806 || typ == 0x86dd {
			want = frame.Continue
			passed++
		}
		if v := (OnlyIP{}).Process(&f, frame.At{}); v != want {
			t.Errorf("%#04x: %v", typ, v)
		}
		f.Tunnel = true
		if v := (OnlyIP{}).Process(&f, frame.At{}); v != frame.Continue {
			t.Errorf("%#04x from a tunnel: %v", typ, v)
		}
	}
	if passed != 3 {
		t.Error(passed)
	}
	short := frame.Over(b, 0, 13)
	if v := (OnlyIP{}).Process(&short, frame.At{}); v != frame.Drop(frame.EtherType) {
		t.Errorf("13 bytes: %v", v)
	}
	packet := frame.Over(b, 0, 20)
	packet.Kind = frame.IPv4
	if v := (OnlyIP{}).Process(&packet, frame.At{}); v != frame.Continue {
		t.Errorf("a packet: %v", v)
	}
}
