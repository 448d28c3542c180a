package evpn

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// What is wrong with the settings of an Ethernet segment names the field; words are read as they are written.
func TestEthernetSegments(t *testing.T) {
	good := EthernetSegment{ESI: bondESI, Port: "p", Election: ByPreference, Preference: 5}
	for want, list := range map[string][]EthernetSegment{
		"": {good, {ESI: "00:11:22:33:44:55:66:77:88:99", Port: "q", Mode: SingleActive}},
		`EthernetSegments[0].ESI: "1": must be ten bytes`:                                {{ESI: "1", Port: "p"}},
		`EthernetSegments[0].ESI: "00:00:00:00:00:00:00:00:00:00": must be ten`:          {{ESI: "00:00:00:00:00:00:00:00:00:00", Port: "p"}},
		`EthernetSegments[1].ESI: "` + bondESI + `": ethernetSegments[0] has it already`: {good, {ESI: bondESI, Port: "q"}},
		`EthernetSegments[1].Port: "p": ethernetSegments[0] has it already`:              {good, {ESI: "00:11:22:33:44:55:66:77:88:99", Port: "p"}},
		`EthernetSegments[0].Port: "": must be the name of a port`:                       {{ESI: bondESI}},
		`EthernetSegments[0].Mode: 2: must be AllActive or SingleActive`:                 {{ESI: bondESI, Port: "p", Mode: 2}},
		`EthernetSegments[0].Election: 3: must be Modulo`:                                {{ESI: bondESI, Port: "p", Election: 3}},
		`EthernetSegments[0].Preference: 5: requires the election by preference`:         {{ESI: bondESI, Port: "p", Preference: 5}},
		`EthernetSegments[0].Wait: -1s: must be 0 or longer`:                             {{ESI: bondESI, Port: "p", Wait: -time.Second}},
	} {
		c := Config{AS: 1, RouterID: netip.MustParseAddr("192.0.2.1"), EthernetSegments: list}
		if err := c.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %s", list, err, want)
		}
	}
	var e EthernetSegment
	text := `{"mode":"single-active","election":"hrw"}`
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Mode != SingleActive || e.Election != HighestWeight {
		t.Errorf("%+v, %v", e, err)
	}
	if b, err := json.Marshal(e); err != nil || !strings.Contains(string(b), text[1:len(text)-1]) {
		t.Errorf("%s, %v", b, err)
	}
}
