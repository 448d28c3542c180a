package node

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

func host(n byte) frame.MAC { return frame.MAC{2, 0, 0, 0, 0, n} }

// greeting returns a broadcast of a host, with a VLAN tag unless vlan is 0.
func greeting(n, vlan byte) []byte {
	src := host(n)
	b := append(frame.Broadcast[:6:6], src[:]...)
	if vlan != 0 {
		b = append(b, 0x81, 0, 0, vlan)
	}
	return append(b, make([]byte, 46)...)
}

// Members of one port in one segment, and members that match, come, change and go while the others stay as they are.
func TestMembersChange(t *testing.T) {
	n := running(t)
	trunk, a, b := port.NewPipe(&port.PipeConfig{Name: "trunk"}), port.NewPipe(&port.PipeConfig{Name: "a"}), port.NewPipe(&port.PipeConfig{Name: "b"})
	one, two := addSegment(t, n, 1, nil), addSegment(t, n, 2, nil)
	must(t, one.Add(trunk, &Member{VLAN: 10}))
	must(t, one.Add(trunk, &Member{VLAN: 20}))
	must(t, one.Add(a, nil))
	must(t, two.Add(b, nil))
	must(t, n.Update(func(c *Config) error {
		c.Segments[0].FDB = []FDB{{MAC: host(9), Port: "trunk.20"}, {MAC: host(8), Port: "a"}}
		return nil
	}))
	receives := func(p *port.Pipe, want bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if !want {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		defer cancel()
		if _, err := p.Recv(ctx); (err == nil) != want {
			t.Errorf("%s received: %v, want %v", p.Name(), err == nil, want)
		}
	}
	at := func(mac frame.MAC, want string) {
		t.Helper()
		v := check.Must(one.Switch())(t)
		e, ok := v.FDB().Get(mac)
		if got := n.Switch().Name(e.Dest); !ok || got != want {
			t.Errorf("%v is at %q, want %q", mac, got, want)
		}
	}
	at(host(9), "trunk.20")
	must(t, trunk.Send(greeting(1, 10)))
	receives(a, true)
	receives(trunk, true) // in VLAN 20
	receives(trunk, false)
	at(host(1), "trunk")

	// One goes, and takes along only what was there.
	must(t, n.Update(func(c *Config) error {
		s := &c.Segments[0]
		s.Members = []Member{s.Members[1], s.Members[2]}
		s.FDB[0].Port = "trunk" // the only one now
		return nil
	}))
	at(host(9), "trunk")
	must(t, trunk.Send(greeting(1, 10)))
	receives(a, false)
	must(t, trunk.Send(greeting(2, 20)))
	receives(a, true)
	must(t, n.Update(func(c *Config) error {
		s := &c.Segments[0]
		s.Members = append(s.Members, Member{Port: "trunk", VLAN: 10})
		s.FDB[0].Port = "trunk.10"
		return nil
	}))
	at(host(2), "trunk.20")
	at(host(9), "trunk.10")

	// Another segment takes what matches.
	match := func(n byte) *policy.Match {
		return &policy.Match{SrcMACs: []policy.MACPrefix{{MAC: host(n), Bits: 48}}}
	}
	must(t, two.Add(trunk, &Member{VLAN: 20, Match: match(3)}))
	must(t, trunk.Send(greeting(3, 20)))
	receives(b, true)
	receives(a, false)
	must(t, n.Update(func(c *Config) error { c.Segments[1].Members[1].Match = match(4); return nil }))
	must(t, trunk.Send(greeting(3, 20)))
	receives(a, true)
	must(t, trunk.Send(greeting(4, 20)))
	receives(b, true)
	receives(a, false)
	must(t, two.Remove(trunk))
	must(t, trunk.Send(greeting(4, 20)))
	receives(a, true)
	receives(b, false)
}

func TestMemberErrors(t *testing.T) {
	const ports = `{"ports": [{"name": "t"}, {"name": "t.5"}, {"name": "p", "type": "tun"}], "segments": [{"vni": 1, `
	for text, want := range map[string]string{
		`"members": [{"port": "t", "vlan": 5}, {"port": "t"}, {"port": "t", "vlan": 5}]}]}`:                             `segments[0].members[2].port: t vlan 5 is already in VNI 1`,
		`"members": [{"port": "t"}, {"port": "t", "match": {"etherTypes": [2048]}}]}]}`:                                 `segments[0].members[1].port: t vlan 0 is already in VNI 1`,
		`"members": [{"port": "t", "vlan": 5}, {"port": "t"}], "fdb": [{"mac": "02:00:00:00:00:01", "port": "t"}]}]}`:   `segments[0].fdb[0].port: "t": must be one of its members there, by the tag: t.5, t.0`,
		`"members": [{"port": "t", "vlan": 5}, {"port": "t"}], "fdb": [{"mac": "02:00:00:00:00:01", "port": "t.6"}]}]}`: `segments[0].fdb[0].port: "t.6": must be a member of the segment`,
		`"members": [{"port": "t", "vlan": 5}, {"port": "t"}, {"port": "t.5"}]}]}`:                                      `segments[0].members[0].port: t has several members, and this one the name of another port, t.5`,
		`"members": [{"port": "t", "match": {}}]}]}`:                                                                    `segments[0].members[0].match.srcMACs: a list of source MACs or of EtherTypes is required`,
		`"members": [{"port": "t", "match": {"etherTypes": [5]}}]}]}`:                                                   `segments[0].members[0].match.etherTypes[0]: 5: must be 1536 (0x600) to 65535`,
		`"members": [{"port": "t", "match": {"srcMACs": ["02:00:00:00:00:01/8"]}}]}]}`:                                  `segments[0].members[0].match.srcMACs[0]: "02:00:00:00:00:01/8": must be a prefix with 0 behind it`,
		`"gateway": {"addresses": ["10.0.0.1/24"]}, "members": [{"port": "p", "match": {"etherTypes": [2048]}}]}]}`:     `segments[0].members[0].match: port "p" carries IP without Ethernet`,
	} {
		if _, err := Parse([]byte(ports + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant\n%s", text, err, want)
		}
	}
}

// matchAll is a Matcher of a program's own.
type matchAll struct{}

func (matchAll) Match(*frame.Frame) bool { return true }

// A member has a match of the configuration or a Matcher of the program's own, not both.
func TestMatchTwice(t *testing.T) {
	m := Member{AttachConfig: vswitch.AttachConfig{Match: matchAll{}}, Match: &policy.Match{EtherTypes: []uint16{0x800}}}
	err := addSegment(t, running(t), 1, nil).Add(port.NewPipe(&port.PipeConfig{Name: "t"}), &m)
	if err == nil || !strings.Contains(err.Error(), "segments[0].members[0].match: the member has a Matcher of the program's own") {
		t.Error(err)
	}
}

// While a match moves from one segment to another, what it takes reaches neither a third one nor, in the end, another than after a
// start with the same configuration.
func TestMatchMoves(t *testing.T) {
	for name, m := range map[string]Member{
		"of a file":    {Match: &policy.Match{SrcMACs: []policy.MACPrefix{{MAC: host(3), Bits: 48}}}},
		"of a program": {AttachConfig: vswitch.AttachConfig{Match: oddSource{}}},
	} {
		t.Run(name, func(t *testing.T) { matchMoves(t, m) })
	}
}

func matchMoves(t *testing.T, match Member) {
	n := running(t)
	trunk := port.NewPipe(&port.PipeConfig{Name: "trunk"})
	var hears [4]*port.Pipe
	for i := range hears {
		hears[i] = port.NewPipe(&port.PipeConfig{Name: string(rune('a' + i))})
		must(t, addSegment(t, n, frame.VNI(i), nil).Add(hears[i], nil))
	}
	at := func(vni frame.VNI, m Member) {
		t.Helper()
		v, err := n.Segment(vni, nil)
		must(t, err)
		m.VLAN = 20
		must(t, v.Add(trunk, &m))
	}
	at(1, Member{})
	at(2, match)
	heard := func() (list []int) {
		for i, p := range hears {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if _, err := p.Recv(ctx); err == nil {
				list = append(list, i)
			}
			cancel()
		}
		return list
	}
	only := func(vni int) {
		t.Helper()
		must(t, trunk.Send(greeting(3, 20)))
		var got []int
		for end := time.Now().Add(5 * time.Second); len(got) == 0 && time.Now().Before(end); {
			got = heard()
		}
		if len(got) != 1 || got[0] != vni {
			t.Errorf("heard in %v, want %d", got, vni)
		}
	}
	move := func(from, to int) {
		t.Helper()
		n.fault = func(string) error {
			trunk.Send(greeting(3, 20))
			time.Sleep(time.Millisecond)
			return nil
		}
		must(t, n.Update(func(c *Config) error {
			members := c.Segments[from].Members
			c.Segments[to].Members = append(c.Segments[to].Members, members[len(members)-1])
			c.Segments[from].Members = members[:len(members)-1]
			return nil
		}))
		n.fault = nil
		for _, i := range heard() {
			if i != from && i != to {
				t.Errorf("from %d to %d: heard in segment %d", from, to, i)
			}
		}
		for len(heard()) > 0 {
		}
		only(to)
	}
	move(2, 3)
	move(3, 0)
	move(0, 2)

	// Of two that match, the lower VNI has it, whatever came first.
	at(0, match)
	only(0)
}

// Names that look alike are two members, and a program's own Matcher stays attached.
func TestMembersStay(t *testing.T) {
	n := running(t)
	one := addSegment(t, n, 1, nil)
	a, b := port.NewPipe(&port.PipeConfig{Name: "t"}), port.NewPipe(&port.PipeConfig{Name: "t.20"})
	must(t, one.Add(a, &Member{VLAN: 20, AttachConfig: vswitch.AttachConfig{Match: matchAll{}}}))
	must(t, one.Add(b, nil))
	v := check.Must(one.Switch())(t)
	before := v.Attachments()
	if len(before) != 2 {
		t.Fatalf("%d attachments", len(before))
	}
	must(t, n.Update(func(c *Config) error { c.Segments[0].MaxMACs = 9; return nil }))
	if after := v.Attachments(); len(after) != 2 || after[0] != before[0] || after[1] != before[1] {
		t.Error("attached anew")
	}
}
