package route

import (
	"encoding/hex"
	"testing"
)

func TestESI(t *testing.T) {
	for want, e := range map[string]ESI{
		"03:00:00:00:00:01:11:00:00:01": {3, 0, 0, 0, 0, 1, 0x11, 0, 0, 1},
		"01:02:00:00:00:00:01:00:64:00": {1, 2, 0, 0, 0, 0, 1, 0, 0x64, 0},
		"00:11:22:33:44:55:66:77:88:99": {0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99},
	} {
		if got, err := ParseESI(want); e.String() != want || got != e || err != nil {
			t.Errorf("%s: %v, %v, %v", want, e, got, err)
		}
	}
	for _, s := range []string{
		"", "1", "00:11:22:33:44:55:66:77:88", "00:11:22:33:44:55:66:77:88:99:aa", "00:11:22:33:44:55:66:77:88:9", "00:11:22:33:44:55:66:77:88:9g",
		"00:00:00:00:00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff:ff:ff:ff:ff", "001:1:22:33:44:55:66:77:88:99",
		"01:11:22:33:44:55:66:77:88:99", "02:00:00:00:00:00:00:00:00:01", "04:c0:00:02:01:00:00:00:01:01", "05:00:00:fd:e8:00:00:00:01:01",
	} {
		if e, err := ParseESI(s); err == nil || e != (ESI{}) {
			t.Errorf("ParseESI(%q): %v, %v", s, e, err)
		}
	}
}

// The bytes are those of RFC 7432, RFC 8584 and RFC 9785.
func TestSegmentCommunities(t *testing.T) {
	e := ESI{3, 2, 0, 0, 0, 0, 5, 0, 0, 1}
	for want, c := range map[string]Community{
		"0601000000000000": ESILabel(false),
		"0601010000000000": ESILabel(true),
		"0602020000000005": ESImport(e),
		"0606000000000000": Election{}.Community(),
		"0606010000000000": Election{Algorithm: 1}.Community(),
		"0606024000007fff": Election{Algorithm: 2, Capabilities: 0x4000, Preference: 32767}.Community(),
	} {
		if got := hex.EncodeToString(c[:]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	x := Election{2, 0x8000, 100}
	c := Join(ESILabel(true), ESImport(ESI{1, 9}), ESImport(e), x.Community())
	single, ok := c.ESILabel()
	if !single || !ok || !c.ESImports(e) || c.ESImports(ESI{1, 8}) || c.Election() != x {
		t.Errorf("%v %v %v %+v", single, ok, c.ESImports(e), c.Election())
	}
	var none Communities
	if single, ok := none.ESILabel(); single || ok || none.ESImports(ESI{}) || none.Election() != (Election{}) {
		t.Error("nothing is said, and something is read")
	}
	if (Election{Algorithm: 0xff}).Community()[2] != 0x1f {
		t.Error("the algorithm has five bits")
	}
}
