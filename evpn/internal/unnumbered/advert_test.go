package unnumbered

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

var router = netip.MustParseAddr("fe80::2")

// What we say is what FRR 8.4 says.
func TestAdvert(t *testing.T) {
	frr, _ := hex.DecodeString("860000004000001e0000000000000000010192a9983e9e52") // without the checksum
	if got := advert(lifetime, net.HardwareAddr(frr[18:])); !bytes.Equal(got, frr) {
		t.Errorf("%x, want %x", got, frr)
	}
	for _, mac := range []net.HardwareAddr{nil, make([]byte, 20)} {
		if got := advert(0, mac); !bytes.Equal(got, slices.Concat([]byte{134, 0, 0, 0, 64}, make([]byte, 11))) {
			t.Errorf("%x", got)
		}
	}
}

func TestParse(t *testing.T) {
	good := advert(lifetime, net.HardwareAddr{2, 0, 0, 0, 0, 1})
	with := func(i int, v byte) []byte {
		b := bytes.Clone(good)
		b[i] = v
		return b
	}
	global := netip.MustParseAddr("2001:db8::2")
	for name, c := range map[string]struct {
		b    []byte
		from netip.Addr
		hops int
		ok   bool
	}{
		"good":                    {good, router, 255, true},
		"no options":              {good[:16], router, 255, true},
		"unknown option":          {with(16, 200), router, 255, true},
		"routed":                  {good, router, 254, false},
		"hop limit unknown":       {good, router, 0, false},
		"from a global address":   {good, global, 255, false},
		"from nowhere":            {good, netip.Addr{}, 255, false},
		"from unspecified":        {good, netip.IPv6Unspecified(), 255, false},
		"from a group":            {good, netip.MustParseAddr("ff02::1"), 255, false},
		"from IPv4":               {good, netip.MustParseAddr("169.254.0.1"), 255, false},
		"from IPv4 in IPv6":       {good, netip.MustParseAddr("::ffff:169.254.0.1"), 255, false},
		"solicitation":            {with(0, 133), router, 255, false},
		"neighbour":               {with(0, 136), router, 255, false},
		"code":                    {with(1, 1), router, 255, false},
		"empty":                   {nil, router, 255, false},
		"short":                   {good[:15], router, 255, false},
		"option of length 0":      {with(17, 0), router, 255, false},
		"option longer than that": {with(17, 2), router, 255, false},
		"half an option":          {good[:17], router, 255, false},
		"cut option":              {good[:23], router, 255, false},
	} {
		counts, ok := parse(c.b, c.from, c.hops)
		if ok != c.ok || ok && counts != 30*time.Second {
			t.Errorf("%s: %v %v", name, counts, ok)
		}
	}
}

func TestSolicits(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		hops int
		want bool
	}{
		"good":          {solicitation(), 255, true},
		"with options":  {append(solicitation(), 1, 1, 2, 0, 0, 0, 0, 1), 255, true},
		"routed":        {solicitation(), 64, false},
		"short":         {solicitation()[:7], 255, false},
		"empty":         {nil, 255, false},
		"code":          {[]byte{133, 1, 0, 0, 0, 0, 0, 0}, 255, false},
		"advertisement": {advert(0, nil), 255, false},
	} {
		if got := solicits(c.b, c.hops); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Nothing that is read is longer than it is, and what we say is read.
func FuzzParse(f *testing.F) {
	f.Add(advert(lifetime, net.HardwareAddr{2, 0, 0, 0, 0, 1}), 255)
	f.Add(advert(0, nil), 255)
	f.Add(append(advert(0, nil), 1, 0), 255)
	f.Fuzz(func(t *testing.T, b []byte, hops int) {
		if counts, ok := parse(b, router, hops); ok && solicits(b, hops) || ok && (hops != 255 || len(b)%8 != 0 || counts > 65535*time.Second) {
			t.Errorf("%x: %v", b, counts)
		}
	})
}
