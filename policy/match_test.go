package policy

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A Match has frames that are in each of its lists; prefixes are of any length.
func TestMatch(t *testing.T) {
	const all = `{"srcMACs": ["02:00:5e:00:00:01", "02:00:60:00:00:00/24", "06:ab:c0:00:00:00/20"], "etherTypes": [2048, 34525]}`
	var both, macs, types Match
	check.OK(t, json.Unmarshal([]byte(all), &both))
	macs.SrcMACs, types.EtherTypes = both.SrcMACs, both.EtherTypes
	check.Equal(t, "as text", string(check.Must(json.Marshal(&both))(t)), `{"srcMACs":["02:00:5e:00:00:01","02:00:60:00:00:00/24","06:ab:c0:00:00:00/20"],"etherTypes":[2048,34525]}`)
	for _, x := range []struct {
		src       string
		etherType uint16
		mac, typ  bool
	}{
		{"02:00:5e:00:00:01", 0x800, true, true},
		{"02:00:5e:00:00:01", 0x806, true, false},
		{"02:00:5e:00:00:02", 0x86dd, false, true},
		{"02:00:60:ff:ff:ff", 0x86dd, true, true},
		{"02:00:61:00:00:00", 0x88cc, false, false},
		{"06:ab:cf:12:34:56", 0x800, true, true},
		{"06:ab:d0:00:00:00", 0x800, false, true},
	} {
		src := check.Must(frame.ParseMAC(x.src))(t)
		f := frame.Make(append(append(frame.Broadcast[:6:6], src[:]...), byte(x.etherType>>8), byte(x.etherType)))
		for m, want := range map[*Match]bool{&macs: x.mac, &types: x.typ, &both: x.mac && x.typ} {
			check.True(t, m.Match(&f) == want, "%s %#x, match %v: %v", x.src, x.etherType, *m, !want)
			if n := testing.AllocsPerRun(10, func() { m.Match(&f) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		}
		f.Kind = frame.IPv4
		check.True(t, !types.Match(&f), "an IP packet matches")
	}
	for n := range 14 {
		f := frame.Make(make([]byte, n))
		check.True(t, !types.Match(&f), "%d bytes match", n)
	}
}

func TestMatchErrors(t *testing.T) {
	for text, want := range map[string]string{
		"02:00:5e":             "a MAC, or a prefix",
		"02:00:5e:00:00:00/49": "0 to 48 bits",
		"02:00:5e:00:00:00/-1": "0 to 48 bits",
		"02:00:5e:00:00:01/24": "a prefix with 0 behind it",
	} {
		_, err := ParseMACPrefix(text)
		check.ErrorHas(t, err, fmt.Sprintf("%q: ", text), want)
	}
	for want, m := range map[string]Match{
		"SrcMACs[1]: 01:00:5e:00:00:00/24":                            {SrcMACs: []MACPrefix{{}, check.Must(ParseMACPrefix("01:00:5e:00:00:00/24"))(t)}},
		"0 to 48 bits":                                                {SrcMACs: []MACPrefix{{Bits: 49}}},
		"EtherTypes[0]: 1535: must be 1536":                           {EtherTypes: []uint16{0x5ff}},
		"SrcMACs: a list of source MACs or of EtherTypes is required": {},
		"EtherTypes: 1025: must be at most 1024 of":                   {EtherTypes: make([]uint16, MaxMatch+1)},
	} {
		check.ErrorHas(t, m.Check(), "Match.", want)
	}
}
