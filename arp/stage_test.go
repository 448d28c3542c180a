package arp

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A neighbour that has been silent for three quarters of the ageing time is asked, once,
// by a frame of its own; its answer ends here and keeps it.
func TestRefresh(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		var asked []frame.Frame
		l := newLab(t, &TableConfig{Ageing: 100 * time.Second}, Config{Mode: Suppress, MAC: ownMAC, Refresh: true,
			Inject: func(f *frame.Frame) bool { asked = append(asked, f.Clone()); return true }})
		l.say(port1, announcement(v6, 1))
		l.say(peer3, announcement(v6, 3)) // its own VTEP asks
		l.say(port2, announcement(v6, 2))
		must(t, l.table.Set(addr(v6, 4), mac(4), Static, 0))
		tend := func(now frame.Tick, want int) {
			t.Helper()
			asked, l.now = nil, now
			l.r.Housekeep(now)
			l.r.Housekeep(now) // by another stage
			if len(asked) != want {
				t.Fatalf("IPv6 %v, at %d: %d asked, want %d", v6, now, len(asked), want)
			}
		}
		tend(74, 0)
		tend(75, 2)
		for i := range asked {
			got := hear(t, asked[i].Bytes())
			host := byte(1)
			if got.dst == mac(2) {
				host = 2
			}
			want := said{kind: whoHas, src: ownMAC, dst: mac(host), sender: nobody(v6), senderMAC: ownMAC, target: addr(v6, host)}
			if v6 {
				want.sender, want.to = netip.MustParseAddr("fe80::ff:ff:fe00:a"), addr(v6, host)
			}
			if got != want {
				t.Errorf("%+v, want\n%+v", got, want)
			}
		}
		if e, _ := l.table.Lookup(addr(v6, 1)); e.State != Probing {
			t.Errorf("%+v", e)
		}
		tend(76, 0)
		re := answer(v6, 1, 0)
		re.dst = ownMAC
		if v, b, _ := l.say(port1, re); v != frame.Consume || b != NotQuestion {
			t.Errorf("%v, %v", v, b)
		}
		if e, _ := l.table.Lookup(addr(v6, 1)); e.State != Reachable || e.Seen != 76 {
			t.Errorf("%+v", e)
		}
		tend(100, 0)
		if _, ok := l.table.Lookup(addr(v6, 2)); ok || l.table.Len() != 2 {
			t.Error("silent, and still there")
		}
		if st := l.r.Stats(); st.Asked != 2 || st.Table.Aged != 2 {
			t.Errorf("%+v", st)
		}
	}
}

// A gateway's address is what IPv4 is asked from, and a burst is bounded.
func TestRefreshBurst(t *testing.T) {
	n := 0
	l := newLab(t, nil, Config{MAC: ownMAC, Refresh: true, Inject: func(f *frame.Frame) bool {
		if got := hear(t, f.Bytes()); got.sender != ip4(gatewayHost) {
			t.Errorf("%+v", got)
		}
		n++
		return true
	}})
	must(t, l.r.SetGateway(gw(false, false)))
	for i := range 2000 {
		l.learns(claim(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), mac(1), port1), New)
	}
	l.r.Housekeep(225)
	if n != refreshBurst {
		t.Errorf("%d asked, want %d", n, refreshBurst)
	}
}

// A control plane is asked once for each unknown target, until its time is over or it
// answers; the answer takes effect at once.
func TestMiss(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil, Config{Mode: Suppress, Miss: true, MissTimeout: 3 * time.Second})
		misses := func(want int) {
			t.Helper()
			n := 0
			for _, e := range l.events {
				if e.Kind == frame.EventNeighbourMiss {
					n++
					if e.IP != addr(v6, 3) || e.VNI != 100 || e.Dest != port1 {
						t.Errorf("%+v", e)
					}
				}
			}
			if l.events = nil; n != want {
				t.Errorf("%d events, want %d", n, want)
			}
		}
		for range 5 {
			l.say(port1, question(v6, 1, 3))
		}
		misses(1)
		l.now = 2
		l.say(port1, question(v6, 1, 3))
		misses(0)
		l.now = 3
		l.say(port1, question(v6, 1, 3))
		misses(1)
		l.set(addr(v6, 3), mac(3), 0, peer3)
		if v, b, _ := l.say(port1, question(v6, 1, 3)); v != frame.Reply || b != Answered {
			t.Errorf("%v, %v", v, b)
		}
	}
}

// The host whose question missed is answered when the entry is set, once, if it has not waited for too long.
func TestLateAnswer(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		var sent []*frame.Frame
		l := newLab(t, nil, Config{Mode: Suppress, Miss: true, MissTimeout: 3 * time.Second, Inject: func(f *frame.Frame) bool {
			sent = append(sent, f)
			return true
		}})
		l.fdb[mac(1)], l.fdb[mac(3)] = port1, peer3
		if _, err := l.r.With(Off); err != nil { // an attachment's, which shares the questions
			t.Fatal(err)
		}
		control := func(n byte) { must(t, l.table.Set(addr(v6, n), mac(n), Control, 0)) }
		l.say(port1, question(v6, 1, 3))
		l.say(port2, question(v6, 2, 4))
		l.say(port1, question(v6, 1, 5))
		control(9)
		if len(sent) != 0 {
			t.Fatalf("%d frames for what nobody asked", len(sent))
		}
		control(3)
		if len(sent) != 1 || sent[0].From != port1 || sent[0].VNI != 100 {
			t.Fatalf("%d frames", len(sent))
		}
		if a := hear(t, sent[0].Bytes()); a.kind != isAt || a.dst != mac(1) || a.senderMAC != mac(3) {
			t.Errorf("%+v", a)
		}
		control(3)
		control(4) // the FDB does not have it
		l.now = 4
		l.r.Housekeep(l.now)
		l.fdb[mac(5)] = peer3
		control(5)
		if len(sent) != 1 || len(l.r.questions.byTarget) != 0 {
			t.Errorf("%d frames, %d questions are left", len(sent), len(l.r.questions.byTarget))
		}
		for n := range 10_000 { // a host that asks for everybody
			b := question(v6, 1, 3)
			b.target = addr(v6, 3).Next()
			for range n % 200 {
				b.target = b.target.Next()
			}
			l.say(port1, b)
		}
		if n := len(l.r.questions.byTarget); n > 512 {
			t.Errorf("%d questions of one host are kept", n)
		}
	}
}

// An answer to either MAC of the gateway ends here: it was its question.
func TestGatewayAsked(t *testing.T) {
	l := newLab(t, nil, Config{Mode: Suppress})
	g := gw(false, true)
	g.VTEPMAC = ownMAC
	must(t, l.r.SetGateway(g))
	for n, to := range []frame.MAC{ownMAC, gatewayMAC} {
		re := answer(false, byte(n+1), 0)
		re.dst = to
		if v, b, _ := l.say(port1, re); v != frame.Consume || b != NotQuestion {
			t.Errorf("%v, %v", v, b)
		}
		if _, ok := l.table.Lookup(ip4(byte(n + 1))); !ok {
			t.Error("not learned")
		}
	}
}

func TestAttachmentMode(t *testing.T) {
	l := newLab(t, nil, Config{Mode: Suppress})
	l.populate(false)
	a, err := l.r.With(Access)
	must(t, err)
	f := at(port1, question(false, 1, 3).bytes(t))
	if v := a.Process(&f, frame.At{}); v != frame.Reply || hear(t, f.Bytes()).senderMAC != DefaultAccessMAC {
		t.Errorf("%v", v)
	}
	if v, _, _ := l.say(port2, question(false, 2, 1)); v != frame.FloodLocal {
		t.Errorf("%v", v)
	}
	if _, ok := l.table.Lookup(ip4(1)); !ok || a.Table() != l.table || a.Mode() != Access || l.r.Stats() != a.Stats() {
		t.Error("nothing in common")
	}
	if _, err := l.r.With(Proxy); err == nil || !strings.Contains(err.Error(), "Config.MAC: ") {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	table, err := NewTable(nil)
	must(t, err)
	locate := func(frame.MAC) (frame.Dest, bool) { return 0, false }
	for _, c := range []struct {
		cfg  Config
		name string
	}{
		{Config{}, "Table"}, {Config{Table: table, Mode: 4}, "Mode"}, {Config{Table: table, Mode: Suppress}, "Locate"},
		{Config{Table: table, Mode: Proxy, Locate: locate}, "MAC"}, {Config{Table: table, MAC: frame.Broadcast}, "MAC"},
		{Config{Table: table, AccessMAC: frame.Broadcast}, "AccessMAC"}, {Config{Table: table, MAC: ownMAC, Refresh: true}, "Inject"},
		{Config{Table: table, Miss: true}, "Notify"}, {Config{Table: table, MissTimeout: 1}, "MissTimeout"},
	} {
		if _, err := NewResponder(&c.cfg); err == nil || !strings.Contains(err.Error(), "arp: Config."+c.name+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	r, err := NewResponder(&Config{Table: table})
	must(t, err)
	if r.SetGateway(&Gateway{}) == nil || r.SetGateway(&Gateway{MAC: ownMAC, IPs: []netip.Addr{{}}}) == nil || r.SetGateway(nil) != nil {
		t.Error("SetGateway")
	}
	for _, m := range []Mode{Off, Suppress, Proxy, Access} {
		var got Mode
		if err := got.UnmarshalText([]byte(m.String())); got != m || err != nil {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	if err := new(Mode).UnmarshalText([]byte("on")); err == nil {
		t.Error("mode on")
	}
}

// Frames that are neither ARP nor ND pass uncounted.
func TestOthers(t *testing.T) {
	l := newLab(t, nil, Config{Mode: Access})
	short := frame.Make([]byte{1, 2, 3})
	packet := frame.Make(question(false, 1, 2).bytes(t))
	packet.Kind = frame.IPv4
	other := frame.Make(patch(question(false, 1, 2).bytes(t), 12, 0x88))
	for _, f := range []*frame.Frame{&short, &packet, &other} {
		if v := l.r.Process(f, frame.At{}); v != frame.Continue {
			t.Errorf("%v", v)
		}
	}
	st := l.r.Stats()
	if st.ARP.Total()+st.ND.Total() != 0 {
		t.Errorf("%+v", st)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{"invalid": true, "": true}
	for b := range NumOutcomes {
		if seen[b.String()] {
			t.Errorf("outcome %d: %q", b, b)
		}
		seen[b.String()] = true
	}
	var c Counts
	c[Answered], c[Spoofed] = 2, 3
	if b, err := json.Marshal(c); err != nil || string(b) != `{"answered":2,"spoofed":3}` {
		t.Errorf("%s, %v", b, err)
	}
	if Mode(9).String() != "invalid" || Origin(9).String() != "invalid" || State(9).String() != "invalid" || LearnOutcome(9).String() != "invalid" {
		t.Error("names of nothing")
	}
}

// Neither answering nor learning what is known allocates.
func TestAllocations(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil, Config{Mode: Suppress})
		l.populate(v6)
		for _, c := range []struct {
			name string
			in   said
			want frame.Verdict
		}{
			{"answered", question(v6, 1, 3), frame.Reply}, {"unknown", question(v6, 1, 5), frame.Continue},
			{"announced", announcement(v6, 1), frame.Continue},
		} {
			in := c.in.bytes(t)
			f := at(port1, in)
			n := testing.AllocsPerRun(100, func() {
				copy(f.Bytes(), in)
				l.now++ // each time there is something to write
				if v := l.r.Process(&f, frame.At{Tick: l.now}); v != c.want {
					t.Fatal(v)
				}
			})
			if n != 0 {
				t.Errorf("%s, IPv6 %v: %v allocations", c.name, v6, n)
			}
		}
	}
}

// However many strangers speak, the table stays as it is, and refusing one costs nothing.
func TestSpoofedFlood(t *testing.T) {
	l := newLab(t, &TableConfig{Limit: 2000}, Config{Mode: Suppress})
	l.r.table.cfg.Notify = nil
	in := question(false, 1, 5).bytes(t)
	f := at(port1, in)
	send := func(i int) {
		b := f.Bytes()
		copy(b, in)
		for _, at := range []int{8, 24} { // the MACs
			b[at], b[at+1], b[at+2] = byte(i>>16), byte(i>>8), byte(i)
		}
		b[28], b[29], b[30], b[31] = 10, byte(i>>16), byte(i>>8), byte(i)
		l.r.Process(&f, frame.At{})
	}
	for i := range 10_000 {
		send(i)
	}
	i := 10_000
	if n := testing.AllocsPerRun(10_000, func() { send(i); i++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if st := l.table.Stats(); st.Entries != 1000 || st.Learned != 1000 || st.Full != uint64(i-1000) {
		t.Errorf("%+v of %d", st, i)
	}
}

// A control plane may answer before the question's turn is over, or while it is: the host hears of it once.
func TestAnswerAtOnce(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		sent := 0
		l := newLab(t, nil, Config{Mode: Suppress, Miss: true, Inject: func(*frame.Frame) bool { sent++; return true }})
		l.fdb[mac(1)], l.fdb[mac(3)] = port1, peer3
		l.r.cfg.Notify = func(frame.Event) { must(t, l.table.Set(addr(v6, 3), mac(3), Control, 0)) }
		f := at(port1, question(v6, 1, 3).bytes(t))
		l.r.Process(&f, frame.At{})
		if sent != 1 || len(l.r.questions.byTarget) != 0 {
			t.Errorf("%d answers, %d questions are left", sent, len(l.r.questions.byTarget))
		}
	}
}
