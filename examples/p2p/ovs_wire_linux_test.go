package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Headers, frames and their ways with Open vSwitch at the other end, and where it does
// otherwise than we do (OVS 3.1, datapath in user space):
//
//   - CE inside: it sends ECT(0) outside, as Linux does (RFC 3168).
//   - ECT(0) in ECT(1): it leaves ECT(0), we raise it (RFC 6040, section 4.2).
//   - reserved bits: it drops a header that has one set, we ignore them.
//   - too long for the tunnel: it drops, and tells nobody.
//   - exts=gbp: it takes the setting, and neither sends nor takes marks.
func TestOpenVSwitchWire(t *testing.T) {
	t.Parallel()
	l := newOVSLab(t)
	l.onA, l.onB = l.ga.Capture("eth0", ""), l.gb.Capture("eth0", "")
	l.macA, l.macB = l.ga.MAC("eth0"), l.gb.MAC("eth0")
	t.Run("headers", l.headers)
	t.Run("receive", l.receive)
	t.Run("ways", l.ways)
	t.Run("too long", l.tooLong)
	t.Run("GBP", l.gbp)
}

// across sends a frame from one guest, waits until the other has it, and returns the tunnel
// packet.
func (l *ovsLab) across(t *testing.T, fromA bool, frame []byte, text string) netns.Packet {
	t.Helper()
	from, to := l.ga, l.onB
	if !fromA {
		from, to = l.gb, l.onA
	}
	wire := l.a.Capture(l.near, "udp dst port 4789")
	from.Inject("eth0", frame)
	has := func(p netns.Packet) bool { return bytes.Contains(p.Data, []byte(text)) }
	to.Want(1, func(p netns.Packet) bool { return !p.Out && has(p) })
	seen := slices.DeleteFunc(only(wire.Stop(), fromA), func(p netns.Packet) bool { return !has(p) })
	if len(seen) != 1 {
		t.Fatalf("%q crossed %d times", text, len(seen))
	}
	return seen[0]
}

// The same frame into both: the outer headers are the same, when both are told the same.
func (l *ovsLab) headers(t *testing.T) {
	for _, c := range []struct {
		flags, options string
		ce             string // the TOS OVS sends of a frame with CE, "" = as ours
	}{
		{"", "", "0x02"},
		{"-ttl 7 -tos 0x48 -df unset", "ttl=7 tos=0x48 df_default=false", "0x4a"},
		{"-ttl inherit -tos inherit -ecn rfc3168", "ttl=inherit tos=inherit", ""},
	} {
		p := l.joined(t, c.flags, strings.Fields(c.options)...)
		var crossed []netns.Packet // ours, OVS's, and again
		for ecn := range uint8(4) {
			for i, way := range [][2]string{{l.macA, l.macB}, {l.macB, l.macA}} {
				text := fmt.Sprintf("headers %q %d from %d.", c.flags, ecn, i)
				crossed = append(crossed, l.across(t, i == 0, datagram(way[0], way[1], 0xb8|ecn, 33, text), text))
			}
		}
		rows := netns.Fields(t, crossed, "", "ip.dsfield", "ip.ttl", "ip.flags.df", "vxlan.flags", "vxlan.vni", "udp.dstport")
		for ecn := range 4 {
			ours, theirs := rows[2*ecn], rows[2*ecn+1]
			want := slices.Clone(ours)
			if ecn == 3 && c.ce != "" {
				_, inner, _ := strings.Cut(want[0], ",")
				want[0] = c.ce + "," + inner
			}
			if !slices.Equal(theirs, want) {
				t.Errorf("%q, ECN %d: ours %q, OVS %q, want %q", c.flags, ecn, ours, theirs, want)
			}
		}
		stop(t, p)
	}
}

// The same packet to both: ECN, and headers with bits that nobody knows.
func (l *ovsLab) receive(t *testing.T) {
	p := l.joined(t, "")
	for in := range uint8(4) {
		for out := range uint8(4) {
			ours, theirs := l.both(outer{tos: out, header: ovsHeader}, in)
			want := ours
			if in == 2 && out == 1 {
				ours, want = ours+" not raised", "ECN 1 not raised"
				if theirs == "ECN 2" {
					theirs = want
				}
			}
			if theirs != want || ours != want {
				t.Errorf("ECN %d in %d: ours %s, OVS %s", in, out, ours, theirs)
			}
		}
	}
	for _, c := range []struct {
		header       string
		ours, theirs string
	}{
		{"\x88", "ECN 0", "dropped"}, // GBP
		{"\x0c", "ECN 0", "dropped"}, // GPE
		{"\x48", "ECN 0", "dropped"},
		{"\x09", "ECN 0", "dropped"},
		{"\x08\x01", "ECN 0", "dropped"},
		{"\x08\x00\x00\x01", "ECN 0", "dropped"},
		{"\x08\x00\x00\x00\x00\x00\x09\x01", "ECN 0", "dropped"},
		{"\x00", "dropped", "dropped"},
		{"\x08\x00\x00\x00\x00\x00\x08", "dropped", "dropped"}, // another network
	} {
		h := append([]byte(c.header), ovsHeader[len(c.header):]...)
		if ours, theirs := l.both(outer{header: h}, 0); ours != c.ours || theirs != c.theirs {
			t.Errorf("header %x: ours %s, OVS %s; want %s and %s", h, ours, theirs, c.ours, c.theirs)
		}
	}
	s := stop(t, p)
	s.wantDrops(t, "ecn", "no-vni-flag", "unknown-vni")
}

var ovsHeader = []byte{8, 0, 0, 0, 0, 0, 9, 0}

// both sends a packet to p2p as from OVS, and to OVS as from p2p, and says what became of
// the frame inside, a datagram with this ECN field: with which field it came out.
func (l *ovsLab) both(o outer, ecn uint8) (ours, theirs string) {
	near, phy := l.a.MAC(l.near), l.b.MAC("phy")
	o.srcMAC, o.dstMAC, o.src, o.dst = phy, near, "10.0.0.2", "10.0.0.1"
	ours = l.into(l.b, "eth1", o, l.macB, l.macA, ecn, l.onA)
	o.srcMAC, o.dstMAC, o.src, o.dst = near, phy, "10.0.0.1", "10.0.0.2"
	for range 3 { // while OVS changes its flows, it drops what is not in them
		if theirs = l.into(l.a, l.near, o, l.macA, l.macB, ecn, l.onB); theirs != "dropped" {
			break
		}
	}
	return ours, theirs
}

// into sends one, and a good one behind it which tells when it is over.
func (l *ovsLab) into(h *netns.Host, dev string, o outer, src, dst string, ecn uint8, at *netns.Capture) string {
	l.number++
	text, end := fmt.Sprintf("received %d.", l.number), fmt.Sprintf("end %d.", l.number)
	good := o
	good.tos, good.header = 0, ovsHeader
	h.Inject(dev, o.packet(datagram(src, dst, ecn, 33, text)), good.packet(note(src, dst, end)))
	at.Want(1, func(p netns.Packet) bool { return !p.Out && bytes.Contains(p.Data, []byte(end)) })
	for _, x := range at.Seen() {
		if !x.Out && bytes.Contains(x.Data, []byte(text)) {
			return fmt.Sprint("ECN ", x.Data[15]&3)
		}
	}
	return "dropped"
}

// A broadcast arrives once, and does not come back; a MAC that moves is followed, both ways.
func (l *ovsLab) ways(t *testing.T) {
	p := l.joined(t, "")
	const x = "02:00:00:00:00:07"
	// say sends a frame and one behind it, and wants it once at the other guest and never at
	// home.
	say := func(fromA bool, src, dst, text string) {
		t.Helper()
		from, home, away := l.ga, l.onA, l.onB
		if !fromA {
			from, home, away = l.gb, l.onB, l.onA
		}
		from.Inject("eth0", note(src, dst, text), note(src, dst, "behind "+text))
		away.Want(1, func(p netns.Packet) bool { return !p.Out && bytes.Contains(p.Data, []byte("behind "+text)) })
		if k, back := heard(away, text)-heard(away, "behind "+text), heard(home, text); k != 1 || back != 0 {
			t.Errorf("%s: arrived %d times, came back %d times", text, k, back)
		}
	}
	say(true, l.macA, everyone, "broadcast from a.")
	say(false, l.macB, everyone, "broadcast from b.")
	say(true, l.macA, "01:00:5e:01:02:03", "multicast from a.")
	say(false, l.macB, "01:00:5e:01:02:03", "multicast from b.")
	say(true, l.macA, "02:00:00:00:dd:01", "unknown from a.")
	say(false, l.macB, "02:00:00:00:dd:02", "unknown from b.")

	wire := l.a.Capture(l.near, "udp dst port 4789")
	before := ask(t, p)
	for i, atA := range []bool{true, false, true, false} {
		say(atA, x, everyone, fmt.Sprintf("x is here, %d.", i))
		// OVS has flows of before for a moment, both ways, and hears what is in one of them later,
		// and in any order: x has to say it again.
		from, home, there, at := l.gb, l.macB, l.ga, l.onA
		if !atA {
			from, home, there, at = l.ga, l.macA, l.gb, l.onB
			text := fmt.Sprintf("once to x, %d.", i)
			from.Inject("eth0", note(home, x, text))
			wire.Want(1, func(p netns.Packet) bool { return p.Out && bytes.Contains(p.Data, []byte(text)) })
		}
		text := fmt.Sprintf("to x, %d.", i)
		l.a.Until("OVS follows", func() bool {
			there.Inject("eth0", note(x, everyone, "x is still here."))
			from.Inject("eth0", note(home, x, text))
			time.Sleep(20 * time.Millisecond)
			return heard(at, text) > 0
		})
		now := ask(t, p)
		if got, want := now.dest(x), map[bool]string{true: "vxs0", false: "10.0.0.2:4789"}[atA]; got != want {
			t.Errorf("move %d: our table has it at %q, want %q", i, got, want)
		}
		if now.Flood.Unknown != before.Flood.Unknown {
			t.Errorf("move %d: what went to it was flooded", i)
		}
	}
	s := stop(t, p)
	s.wantDrops(t)
}

// A packet that does not fit: the guest behind p2p is told, the one behind OVS is not.
func (l *ovsLab) tooLong(t *testing.T) {
	p := l.joined(t, "")
	for h, devs := range map[*netns.Host][]string{l.ga: {"eth0"}, l.gb: {"eth0"}, l.a: {"eth0", "vxs0"}, l.b: {"eth0"}} {
		for _, dev := range devs {
			h.MTU(dev, 1500)
			defer h.MTU(dev, 1450)
		}
	}
	if got := mtuOf(t, l.ga, "192.168.7.2", 1451-28); got != 1450 {
		t.Errorf("ours says %d, want 1450", got)
	}
	for size, want := range map[int]bool{1450: true, 1451: false} {
		wait := map[bool]string{true: "3", false: "0.5"}[want]
		out, err := l.gb.Try(t.Context(), "ping", "-n", "-c", "1", "-W", wait, "-M", "do", "-s", fmt.Sprint(size-28), "192.168.7.1")
		if (err == nil) != want || strings.Contains(out, "mtu") {
			t.Errorf("%d bytes from OVS's guest:\n%s", size, out)
		}
	}
	s := stop(t, p)
	s.wantDrops(t, "too-big")
}

// OVS 3.1 takes exts=gbp, sends no marks, and drops what has one: a tunnel without marks is
// all there is.
func (l *ovsLab) gbp(t *testing.T) {
	p := l.joined(t, "", "exts=gbp")
	l.ovs.Flows("add-flow", "br0", "priority=10,in_port=eth0,actions=set_field:4660->tun_gbp_id,NORMAL")
	defer l.ovs.Flows("del-flows", "br0", "in_port=eth0")
	crossed := []netns.Packet{
		l.across(t, true, note(l.macA, l.macB, "a mark?"), "a mark?"), l.across(t, false, note(l.macB, l.macA, "a mark?"), "a mark?"),
	}
	for i, got := range netns.Fields(t, crossed, "", "vxlan.flags", "vxlan.gbp") {
		if got[0] != "0x0800" || got[1] != "0" {
			t.Errorf("packet %d: %q", i, got)
		}
	}
	marked := outer{header: []byte{0x88, 0, 0x12, 0x34, 0, 0, 9, 0}}
	if ours, theirs := l.both(marked, 0); ours != "ECN 0" || theirs != "dropped" {
		t.Errorf("with a mark: ours %s, OVS %s", ours, theirs)
	}
	stop(t, p)
}
