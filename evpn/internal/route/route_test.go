package route

import (
	"net/netip"
	"strings"
	"testing"
)

func TestRD(t *testing.T) {
	for want, d := range map[string]RD{
		"192.0.2.1:5":      RDFrom(netip.MustParseAddr("192.0.2.1"), 5),
		"65000:70000":      {0, 0, 0xfd, 0xe8, 0, 1, 0x11, 0x70},
		"70000:5":          {0, 2, 0, 1, 0x11, 0x70, 0, 5},
		"0003000000000001": {0, 3, 0, 0, 0, 0, 0, 1},
	} {
		if got := d.String(); got != want {
			t.Errorf("%x: %s, want %s", d[:], got, want)
		}
		if got, err := ParseRD(want); d[1] <= 2 && (got != d || err != nil) || d[1] > 2 && err == nil {
			t.Errorf("ParseRD(%s): %v, %v", want, got, err)
		}
	}
	for _, s := range []string{"", "5", ":", "65000:", ":5", "192.0.2.1:70000", "4294967296:1", "70000:70000", "1:-1", "2001:db8::1:5"} {
		if d, err := ParseRD(s); err == nil || !strings.HasSuffix(err.Error(), numbers) {
			t.Errorf("ParseRD(%q): %v, %v", s, d, err)
		}
	}
}

func TestAddr(t *testing.T) {
	for _, s := range []string{"192.0.2.1", "2001:db8::1"} {
		a := AddrFrom(netip.MustParseAddr(s))
		if a.String() != s || a.Bits() != a.Netip().BitLen() || len(a.Bytes())*8 != a.Bits() {
			t.Errorf("%s: %v, %d bits", s, a, a.Bits())
		}
	}
	if a := AddrFrom(netip.MustParseAddr("::ffff:192.0.2.1")); a.Bits() != 32 {
		t.Errorf("in IPv6 form: %d bits", a.Bits())
	}
	if a := AddrFrom(netip.MustParseAddr("fe80::1%eth0")); a.String() != "fe80::1" {
		t.Errorf("with a zone: %v", a)
	}
	if a := AddrFrom(netip.Addr{}); a != (Addr{}) || a.Netip().IsValid() || a.String() != "none" {
		t.Errorf("none: %v", a)
	}
}
