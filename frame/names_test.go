package frame

import (
	"encoding/json"
	"maps"
	"net/netip"
	"regexp"
	"testing"
)

func TestReasonNames(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]Reason{}
	for r := range NumReasons {
		s := r.String()
		if !kebab.MatchString(s) {
			t.Errorf("reason %d is called %q", r, s)
		}
		if o, twice := seen[s]; twice {
			t.Errorf("reasons %d and %d are both called %q", o, r, s)
		}
		seen[s] = r
	}
	if NotDropped.String() != "none" || NumReasons.String() != "invalid" || Reason(255).String() != "invalid" {
		t.Error("the ends of the list")
	}
	for _, want := range []string{
		"short", "no-vni-flag", "reserved-bits", "unknown-vni", "unknown-peer", "bad-source-mac", "own-mac", "peer-limit", "kind",
		"split-horizon", "reflect", "unknown-unicast-off", "storm", "mac-pinned", "filtered", "too-big", "ecn", "ttl", "no-route",
		"unresolved", "martian", "bad-checksum", "bad-header", "fragment", "gpe-version", "gpe-protocol", "gpe-oam", "policy", "port-full", "port-down",
	} {
		if _, ok := seen[want]; !ok {
			t.Errorf("no reason is called %q", want)
		}
	}
}

func TestDrops(t *testing.T) {
	var d Drops
	if d.Total() != 0 {
		t.Error("not zero")
	}
	if b, err := json.Marshal(d); err != nil || string(b) != "{}" {
		t.Errorf("%s, %v", b, err)
	}
	d[Short], d[PortFull], d[SendFailed] = 3, 4, 5
	if d.Total() != 12 {
		t.Error(d.Total())
	}
	b, err := json.Marshal(struct{ D Drops }{d})
	if err != nil || string(b) != `{"D":{"port-full":4,"send-failed":5,"short":3}}` {
		t.Errorf("%s, %v", b, err)
	}
	if got := maps.Collect(d.All()); !maps.Equal(got, map[Reason]uint64{Short: 3, PortFull: 4, SendFailed: 5}) {
		t.Errorf("%v", got)
	}
	for r := range d.All() {
		if r != Short {
			t.Error("not in order")
		}
		break // stops
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		v      Verdict
		action Action
		dest   Dest
		reason Reason
		name   string
	}{
		{Verdict(0), ActContinue, 0, 0, "continue"},
		{Continue, ActContinue, 0, 0, "continue"},
		{Forward(NewDest(7, 9)), ActForward, NewDest(7, 9), 0, "forward 7/9"},
		{Forward(NewDest(65535, 65535)), ActForward, NewDest(65535, 65535), 0, "forward 65535/65535"},
		{Forward(0), ActForward, 0, 0, "forward 0"},
		{FloodAll, ActFlood, 0, 0, "flood"},
		{FloodLocal, ActFlood, 0, 0, "flood local"},
		{Reply, ActReply, 0, 0, "reply"},
		{Reenter, ActReenter, 0, 0, "reenter"},
		{Consume, ActConsume, 0, 0, "consume"},
		{Drop(Reflect), ActDrop, 0, Reflect, "drop reflect"},
		{Drop(NumReasons - 1), ActDrop, 0, NumReasons - 1, "drop " + (NumReasons - 1).String()},
	} {
		if c.v.Action() != c.action || c.v.Dest() != c.dest || c.v.Reason() != c.reason || c.v.String() != c.name {
			t.Errorf("%v: %v %v %v, want %q %v %v %v", c.v, c.v.Action(), c.v.Dest(), c.v.Reason(), c.name, c.action, c.dest, c.reason)
		}
	}
	if FloodAll == FloodLocal || Continue != 0 {
		t.Error("verdicts are words that compare")
	}
	if s := Verdict(0xff << verdictAction).String(); s != "verdict(0xff0000000000)" {
		t.Error(s)
	}
}

func TestDest(t *testing.T) {
	for _, c := range []struct {
		port, peer uint16
		want       Dest
		name       string
	}{{0, 0, 0, "0"}, {1, 0, 0x10000, "1"}, {1, 2, 0x10002, "1/2"}, {65535, 65535, 0xffffffff, "65535/65535"}, {0, 0xffff, Filter, "filter"}} {
		d := NewDest(c.port, c.peer)
		if d != c.want || d.Port() != c.port || d.Peer() != c.peer || d.String() != c.name {
			t.Errorf("%d/%d: %v", c.port, c.peer, d)
		}
	}
	if !MaxVNI.Valid() || (MaxVNI + 1).Valid() || MaxVNI.String() != "16777215" {
		t.Error("a VNI has 24 bits")
	}
}

func TestMAC(t *testing.T) {
	m, err := ParseMAC("02:00:5e:10:20:30")
	if err != nil || m != (MAC{2, 0, 0x5e, 0x10, 0x20, 0x30}) || m.String() != "02:00:5e:10:20:30" {
		t.Errorf("%v, %v", m, err)
	}
	if m.Uint64() != 0x02005e102030 || MACFrom(m.Uint64()) != m || MACFrom(0xffff<<48|m.Uint64()) != m {
		t.Errorf("%#x", m.Uint64())
	}
	if n, err := ParseMAC("0200.5e10.2030"); err != nil || n != m {
		t.Error("dotted form")
	}
	for _, bad := range []string{"", "x", "02:00:5e:10:20", "02:00:5e:10:20:30:40:50", "02:00:5e:10:20:3g"} {
		if _, err := ParseMAC(bad); err == nil {
			t.Errorf("%q is no MAC", bad)
		}
	}
	if m.IsGroup() || m.IsZero() || !Broadcast.IsGroup() || !(MAC{1}).IsGroup() || (MAC{0xfe}).IsGroup() || !(MAC{}).IsZero() {
		t.Error("group and zero")
	}
	b, err := json.Marshal(map[MAC]MAC{m: Broadcast})
	if err != nil || string(b) != `{"02:00:5e:10:20:30":"ff:ff:ff:ff:ff:ff"}` {
		t.Errorf("%s, %v", b, err)
	}
	var back map[MAC]MAC
	if err := json.Unmarshal(b, &back); err != nil || back[m] != Broadcast {
		t.Errorf("%v, %v", back, err)
	}
	old := m
	if err := m.UnmarshalText([]byte("nonsense")); err == nil || m != old {
		t.Error("a bad text changes nothing")
	}
	if h := m.HardwareAddr(); h.String() != m.String() {
		t.Error(h)
	}
}

func TestEndpoint(t *testing.T) {
	for _, s := range []string{"192.0.2.1:4789", "0.0.0.0:0", "[2001:db8::1]:4789", "[fe80::1%7]:1"} {
		a := netip.MustParseAddrPort(s)
		e, err := EndpointFrom(a)
		if err != nil || e.AddrPort() != a || e.String() != s || e.Is4() != a.Addr().Is4() {
			t.Errorf("%s became %v, %v", s, e, err)
		}
		if e.Host().Port != 0 || e.Host().WithPort(e.Port) != e || e.WithPort(9).Host() != e.Host() || e.WithPort(9).Port != 9 {
			t.Errorf("%s: host and port", s)
		}
	}
	four, _ := EndpointFrom(netip.MustParseAddrPort("192.0.2.1:5"))
	mapped, err := EndpointFrom(netip.MustParseAddrPort("[::ffff:192.0.2.1]:5"))
	if err != nil || four != mapped || !mapped.Is4() {
		t.Error("IPv4 in IPv6 form is the same endpoint")
	}
	if _, err := EndpointFrom(netip.AddrPort{}); err == nil {
		t.Error("no address")
	}
	if _, err := EndpointFrom(netip.MustParseAddrPort("[fe80::1%no-such-interface]:1")); err == nil {
		t.Error("a zone that is no interface")
	}
	if (Endpoint{}).Is4() {
		t.Error("the zero Endpoint is ::")
	}
}

func TestEventNames(t *testing.T) {
	seen := map[string]bool{}
	for k := EventOverflow; k <= EventNextHopUp; k++ {
		if s := k.String(); s == "" || seen[s] {
			t.Errorf("event %d is called %q", k, s)
		} else {
			seen[s] = true
		}
	}
	if len(seen) != len(eventNames) || EventKind(len(eventNames)).String() != "invalid" {
		t.Errorf("%d kinds, %d names", len(seen), len(eventNames))
	}
}
