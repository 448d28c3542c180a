package node

import (
	"net"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A peerSocket is a VTEP that sends what a test writes, to the node of this test's files.
func peerSocket(t *testing.T, local string, to *net.UDPAddr) func(vni byte, frames ...[]byte) {
	t.Helper()
	c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(local)}, to)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return func(vni byte, frames ...[]byte) {
		t.Helper()
		for _, b := range frames {
			if _, err := c.Write(append([]byte{8, 0, 0, 0, 0, 0, vni, 0}, b...)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// dropped is how often the node's segments have dropped for a reason.
func dropped(n *Node, vni frame.VNI, r frame.Reason) uint64 {
	for _, v := range n.Switch().Stats().VSIs {
		if v.VNI == vni {
			return v.Drops[r]
		}
	}
	return 0
}

// A segment's storm control, freezing and VLANs are those of the file, also of the next one.
func TestSegmentLimits(t *testing.T) {
	n := running(t)
	text := func(keys string) string {
		return `{"tunnels": [{"name": "vx", "local": "127.0.0.1", "port": 14790}], "segments": [{"vni": 10, "tunnel": "vx"` + keys + `}]}`
	}
	must(t, n.Apply(parse(t, text(`, "storm": {"broadcast": {"packets": 3}, "multicast": {"bits": 8000}}, "freeze": 2`))))
	events := n.Switch().Events()
	defer events.Close()
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 14790}
	a, b := peerSocket(t, "127.0.0.2", to), peerSocket(t, "127.0.0.3", to)
	from := func(dst frame.MAC, src byte, tag ...byte) []byte {
		return append(append(append(dst[:], 2, 0, 0, 0, 0, src), tag...), append([]byte{0x88, 0xb5}, make([]byte, 46)...)...)
	}
	one, group := from(frame.Broadcast, 1), from(frame.MAC{1, 0, 0x5e, 0, 0, 1}, 1)
	a(10, one, one, one, one, one, one, one, one, one, one)
	fake.Until(t, "storms", func() bool { return dropped(n, 10, frame.Storm) >= 5 })
	storms := dropped(n, 10, frame.Storm)
	for range 40 { // 480 bits each
		a(10, group)
	}
	fake.Until(t, "storms of multicast", func() bool { return dropped(n, 10, frame.Storm) >= storms+10 })

	a(10, from(frame.Broadcast, 7))
	seen := func(d string) func() bool {
		return func() bool {
			v, _ := n.Switch().VSI(10, nil)
			e, ok := v.FDB().Get(frame.MAC{2, 0, 0, 0, 0, 7})
			return ok && n.Switch().Name(e.Dest) == d
		}
	}
	fake.Until(t, "a host", seen("127.0.0.2:14790"))
	b(10, from(frame.Broadcast, 7))
	fake.Until(t, "a move", seen("127.0.0.3:14790"))
	a(10, from(frame.Broadcast, 7))
	fake.Until(t, "another", seen("127.0.0.2:14790"))
	b(10, from(frame.Broadcast, 7))
	fake.Until(t, "a claim of a frozen MAC", func() bool { return dropped(n, 10, frame.MACPinned) == 1 })
	for {
		e, err := events.Next(t.Context())
		must(t, err)
		if e.Kind == frame.EventMACFrozen {
			if d, o := n.Switch().Name(e.Dest), n.Switch().Name(e.Old); d != "127.0.0.2:14790" || o != "127.0.0.3:14790" {
				t.Errorf("frozen at %s, claimed by %s", d, o)
			}
			break
		}
	}

	tagged := from(frame.Broadcast, 8, 0x81, 0, 0, 5)
	a(10, tagged)
	fake.Until(t, "a tag to be refused", func() bool { return dropped(n, 10, frame.InnerVLAN) == 1 })
	for i, mode := range []string{"strip", "pass"} {
		must(t, n.Apply(parse(t, text(`, "innerVLAN": "`+mode+`"`))))
		none := dropped(n, 10, frame.NoEgress)
		a(10, tagged)
		fake.Until(t, mode, func() bool { return dropped(n, 10, frame.NoEgress) == none+1 })
		if d := dropped(n, 10, frame.InnerVLAN); d != 1 {
			t.Errorf("%d: %d refused", i, d)
		}
	}
	storms = dropped(n, 10, frame.Storm)
	for range 20 {
		a(10, one)
	}
	none := dropped(n, 10, frame.NoEgress)
	a(10, tagged)
	fake.Until(t, "the last", func() bool { return dropped(n, 10, frame.NoEgress) > none })
	if d := dropped(n, 10, frame.Storm); d != storms {
		t.Errorf("%d storms where there is no limit", d-storms)
	}
}

// Only MACs of the file send on a locked member, whose storm control is its own.
func TestMemberLimits(t *testing.T) {
	l := newLab(t)
	const open, shut = `{"port": "t1"`, `{"port": "t1", "locked": true`
	file := func(member, fdb string) *Config {
		return parse(t, `{"ports": [{"name": "t1"}, {"name": "t2"}], "segments": [{"vni": 10, "members": [`+member+`}, {"port": "t2"}]`+fdb+`}]}`)
	}
	s := l.start("s", "192.0.2.1", file(open, ""))
	g, h := s.guest("t1", "10.0.0.1/24", ""), s.guest("t2", "10.0.0.2/24", "")
	g.Ping("10.0.0.2", 2)
	s.must(file(shut, ""))
	if _, err := g.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "10.0.0.2"); err == nil {
		t.Error("who is not entered is heard")
	}
	if s.stats("t1").RxDrops[frame.Locked] == 0 {
		t.Errorf("%v", s.stats("t1").RxDrops)
	}
	s.must(file(shut, `, "fdb": [{"mac": "`+g.MAC("t1")+`", "port": "t1"}]`))
	g.Ping("10.0.0.2", 2)
	h.Ping("10.0.0.1", 2)
	g.SetMAC("t1", "02:00:00:00:00:99")
	if _, err := g.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "10.0.0.2"); err == nil {
		t.Error("another MAC is heard")
	}

	s.must(file(open+`, "storm": {"broadcast": {"packets": 2}}`, ""))
	frames := make([][]byte, 50)
	for i := range frames {
		frames[i] = append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0x99, 0x88, 0xb5}, make([]byte, 46)...)
	}
	g.Inject("t1", frames...)
	fake.Until(t, "storms", func() bool { return s.stats("t1").RxDrops[frame.Storm] > 30 })
	h.Inject("t2", frames...)
	fake.Until(t, "no storm on the other member", func() bool { return s.stats("t2").Flood.Broadcast >= 50 })
	if d := s.stats("t2").RxDrops[frame.Storm]; d != 0 {
		t.Errorf("%d storms on the other member", d)
	}
}
