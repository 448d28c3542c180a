package afpacket

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
	"github.com/vxswitch/vxswitch/internal/neighbour"
)

// A hopLab is a table of next hops, its clock and what it says.
type hopLab struct {
	*hops
	t     *testing.T
	now   time.Time
	asked []string
	sent  []string
	lost  datagrams.Lost
}

func newHopLab(t *testing.T) *hopLab {
	l := &hopLab{t: t, now: time.Unix(1000, 0)}
	l.hops = newHops(
		func(ip hopKey, mac frame.MAC) { l.asked = append(l.asked, fmt.Sprint(ip[15], " ", mac)) },
		func(b []byte) { l.sent = append(l.sent, string(b)) }, &l.lost)
	return l
}

// pass lets time pass, a quarter of a second at a time.
func (l *hopLab) pass(d time.Duration) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(time.Second / 4)
		l.tend(l.now)
	}
}

func (l *hopLab) wantAsked(want ...string) {
	l.t.Helper()
	if !slices.Equal(l.asked, want) {
		l.t.Errorf("asked %q, want %q", l.asked, want)
	}
	l.asked = nil
}

func (l *hopLab) wantMAC(h *hop, mac frame.MAC) {
	l.t.Helper()
	var want uint64
	if !mac.IsZero() {
		want = mac.Uint64() | hopResolved
	}
	if got := h.mac.Load(); got != want {
		l.t.Errorf("MAC %x, want %x", got, want)
	}
}

// use is what a sender does.
func (l *hopLab) send(h *hop, text string) bool {
	l.use(h)
	if h.mac.Load() != 0 {
		return true
	}
	return !h.full() && l.hold(h, []byte("MACMAC"+text))
}

const (
	all   = "2 00:00:00:00:00:00"
	itsel = "2 aa:bb:cc:dd:ee:01"
)

var (
	hopIP  = hopKey{15: 2}
	hopMAC = frame.MAC{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 1}
	newMAC = frame.MAC{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 2}
)

func answerFrom(mac frame.MAC) *notice {
	return &notice{ip: hopIP, mac: mac, told: true, sure: true, change: true}
}

func TestHopIsAskedAndAnswers(t *testing.T) {
	l := newHopLab(t)
	h := l.find(hopIP, l.now)
	if l.find(hopIP, l.now) != h {
		t.Error("two hops at one address")
	}
	l.wantAsked(all)
	for i, want := range []bool{true, true, true, false} {
		if l.send(h, fmt.Sprint(i)) != want {
			t.Errorf("packet %d waits: %v", i, !want)
		}
	}
	l.pass(time.Second)
	l.wantAsked(all)
	l.learn(&notice{ip: hopKey{15: 9}, mac: hopMAC, told: true, sure: true}, l.now) // not asked for
	if _, ok := l.byIP.Load(hopKey{15: 9}); ok {
		t.Error("an answer that nobody asked for is kept")
	}
	l.learn(answerFrom(hopMAC), l.now)
	l.wantMAC(h, hopMAC)
	if want := []string{string(hopMAC[:]) + "0", string(hopMAC[:]) + "1", string(hopMAC[:]) + "2"}; !slices.Equal(l.sent, want) {
		t.Errorf("%q", l.sent)
	}
	if l.held.Bytes() != 0 || !l.send(h, "now") {
		t.Error("something still waits")
	}
	l.pass(25 * time.Second)
	l.wantAsked()
}

func TestHopThatDoesNotAnswer(t *testing.T) {
	l := newHopLab(t)
	h := l.find(hopIP, l.now)
	l.send(h, "lost")
	l.pass(4 * time.Second)
	l.wantAsked(all, all, all)
	if l.lost[frame.Unresolved].Load() != 1 || l.held.Bytes() != 0 {
		t.Errorf("%d lost, %d bytes held", l.lost[frame.Unresolved].Load(), l.held.Bytes())
	}
	if l.send(h, "no") {
		t.Error("a packet waits for a hop that has failed")
	}
	l.pass(time.Second / 2)
	l.wantAsked() // it rests
	l.pass(time.Second)
	l.wantAsked(all)
	if !l.send(h, "yes") {
		t.Error("no packet waits though the hop is asked again")
	}
	l.learn(answerFrom(hopMAC), l.now)
	l.wantMAC(h, hopMAC)
}

// Nobody sends to it: it is left alone, and forgotten in the end.
func TestHopIsForgotten(t *testing.T) {
	for _, known := range []bool{false, true} {
		l := newHopLab(t)
		h := l.find(hopIP, l.now)
		if known {
			l.learn(answerFrom(hopMAC), l.now)
		}
		l.pass(9 * time.Minute)
		if h.gone.Load() {
			t.Error("forgotten too early")
		}
		l.asked = nil
		l.pass(3 * time.Minute)
		l.wantAsked()
		if !h.gone.Load() || h.mac.Load() != 0 || len(l.all) != 0 || l.find(hopIP, l.now) == h {
			t.Error("still there")
		}
	}
}

// One in use is asked again, itself; what is sent meanwhile goes to the MAC that is known.
func TestHopInUse(t *testing.T) {
	l := newHopLab(t)
	h := l.find(hopIP, l.now)
	l.learn(answerFrom(hopMAC), l.now)
	l.asked = nil
	for l.asked == nil && l.now.Before(time.Unix(1100, 0)) {
		l.send(h, "")
		l.pass(time.Second / 4)
	}
	if d := l.now.Sub(time.Unix(1000, 0)); d < 29*time.Second || d > 62*time.Second {
		t.Errorf("asked after %v", d)
	}
	l.wantAsked(itsel)
	l.wantMAC(h, hopMAC)
	l.learn(&notice{ip: hopIP, sure: true}, l.now) // an advertisement without an address
	l.pass(5 * time.Second)
	l.wantAsked()

	l.send(h, "")
	l.pass(60 * time.Second)
	if l.asked = l.asked[:min(3, len(l.asked))]; !slices.Equal(l.asked, []string{itsel, itsel, itsel}) {
		t.Errorf("asked %q", l.asked)
	}
	l.wantMAC(h, frame.MAC{})
	l.learn(answerFrom(newMAC), l.now)
	l.wantMAC(h, newMAC)
}

func TestHopAnnouncesAnotherMAC(t *testing.T) {
	l := newHopLab(t)
	h := l.find(hopIP, l.now)
	l.learn(answerFrom(hopMAC), l.now)
	l.asked = nil
	l.learn(&notice{ip: hopIP, mac: newMAC, told: true}, l.now) // not in the place of another
	l.wantMAC(h, hopMAC)
	l.send(h, "")
	l.pass(time.Second / 4)
	l.wantAsked(itsel)
	l.learn(&notice{ip: hopIP, mac: newMAC, told: true, change: true}, l.now)
	l.wantMAC(h, newMAC)
	l.send(h, "")
	l.pass(time.Second / 4)
	l.wantAsked("2 aa:bb:cc:dd:ee:02") // believed, and checked
}

func TestHopsAreBounded(t *testing.T) {
	l := newHopLab(t)
	l.most = 1000
	big := make([]byte, 64<<10)
	var hs []*hop
	for i := range 100 {
		h := l.find(hopKey{14: 1, 15: byte(i)}, l.now)
		hs = append(hs, h)
		for range 3 {
			if !l.hold(h, big) {
				t.Fatalf("hop %d refuses a packet", i)
			}
		}
		if n := l.held.Bytes(); n > neighbour.Queued {
			t.Fatalf("%d bytes wait", n)
		}
	}
	kept := 0
	for i, h := range hs {
		if kept += h.held.Len(); h.held.Len() > 0 && i < 100-6 {
			t.Errorf("hop %d still has packets, though others came later", i)
		}
	}
	if lost := l.lost[frame.Unresolved].Load(); kept*len(big) != l.held.Bytes() || int(lost)+kept != 300 || kept < 15 {
		t.Errorf("%d packets wait, %d bytes, %d lost", kept, l.held.Bytes(), lost)
	}
	l.pass(5 * time.Second)
	if l.held.Bytes() != 0 || l.held.Places() != 0 || l.lost[frame.Unresolved].Load() != 300 {
		t.Errorf("%d bytes wait, %d lost", l.held.Bytes(), l.lost[frame.Unresolved].Load())
	}
	for i := range l.most {
		h := l.find(hopKey{12: 1, 14: byte(i >> 8), 15: byte(i)}, l.now)
		if h == nil || len(l.all) > l.most {
			t.Fatalf("no room for hop %d of %d", i, len(l.all))
		}
		l.learn(&notice{ip: h.ip, mac: hopMAC, told: true, sure: true, change: true}, l.now)
		l.use(h)
	}
	if h := l.find(hopKey{0: 9}, l.now); h != nil {
		t.Error("a hop that is known and in use gave way")
	}
	if len(l.all) != l.most {
		t.Errorf("%d hops", len(l.all))
	}
}

// For ten minutes somebody has three packets sent to each of 200 new addresses a second, which
// nobody has: more than the table holds, and more bytes than may wait. Hosts that are in use stay,
// and new ones are found, and get the packets that waited for them.
func TestWorstHops(t *testing.T) {
	const busy, seconds = 50, 600
	run := func(attack bool) (sent, found int) {
		l := newHopLab(t)
		l.most = 500
		var ask []hopKey
		l.ask = func(ip hopKey, mac frame.MAC) { ask = append(ask, ip) }
		answer := func() { // of those that are there, a moment later
			for _, ip := range ask {
				if ip[0] == 1 {
					l.learn(&notice{ip: ip, mac: hopMAC, told: true, sure: true, change: true}, l.now)
				}
			}
			ask = ask[:0]
		}
		packet := make([]byte, 4000)
		stranger := uint32(0)
		scan := func(n int) {
			for ; attack && n > 0; n-- {
				stranger++
				ip := hopKey{0: 2}
				binary.BigEndian.PutUint32(ip[12:], stranger)
				if h := l.find(ip, l.now); h != nil {
					for range 3 {
						l.use(h)
						l.hold(h, packet)
					}
				}
			}
		}
		for i := range busy {
			l.find(hopKey{0: 1, 15: byte(i)}, l.now)
		}
		answer()
		for s := range seconds {
			l.now = l.now.Add(time.Second)
			l.tend(l.now)
			answer()
			scan(180)
			for i := range busy {
				if h := l.find(hopKey{0: 1, 15: byte(i)}, l.now); h != nil && l.send(h, "x") && h.mac.Load() != 0 {
					sent++
				}
			}
			l.sent = nil
			h := l.find(hopKey{0: 1, 1: 1, 14: byte(s >> 8), 15: byte(s)}, l.now)
			if h == nil || !l.send(h, "first") {
				continue
			}
			scan(20) // before it answers
			answer()
			if len(l.sent) > 0 && strings.HasSuffix(l.sent[0], "first") {
				found++
			}
		}
		return sent, found
	}
	sent, found := run(false)
	sent2, found2 := run(true)
	worst.Kept(t, "next hops of an AF_PACKET underlay", sent, sent2)
	worst.Kept(t, "packets queued for these next hops", found, found2)
}
