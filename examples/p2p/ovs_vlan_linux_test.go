package main

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// found says how a note arrived: "" not at all, or its tag.
func found(c *netns.Capture, text string) string {
	for _, p := range c.Seen() {
		if p.Out || !bytes.HasSuffix(p.Data, []byte(text)) {
			continue
		}
		if p.Data[12] == 0x81 {
			return fmt.Sprintf("tag %d", p.Data[15])
		}
		return "untagged"
	}
	return ""
}

// offer sends a frame until one without a tag, sent behind it, arrives, and says how the
// first did.
func (l *ovsLab) offer(t *testing.T, fromA bool, frame func(text string) []byte) string {
	t.Helper()
	from, to, src := l.ga, l.onB, l.macA
	if !fromA {
		from, to, src = l.gb, l.onA, l.macB
	}
	l.number++
	text, end := fmt.Sprintf("offer %d.", l.number), fmt.Sprintf("end %d.", l.number)
	l.a.Until("a frame without a tag arrives", func() bool {
		from.Inject("eth0", frame(text), note(src, everyone, end))
		time.Sleep(20 * time.Millisecond)
		return found(to, end) != ""
	})
	return found(to, text)
}

// A tagged frame of the guest of Open vSwitch, whose ports are trunks, is in the tunnel as
// it is: what p2p does with it, and with one of its own guest.
func TestOpenVSwitchInnerVLAN(t *testing.T) {
	t.Parallel()
	l := newOVSLab(t)
	l.onA, l.onB = l.ga.Capture("eth0", ""), l.gb.Capture("eth0", "")
	l.macA, l.macB = l.ga.MAC("eth0"), l.gb.MAC("eth0")
	for _, c := range []struct{ flags, toA, toB string }{
		{"", "", ""}, // RFC 7348, section 6.1
		{"-inner-vlan discard", "", ""},
		{"-inner-vlan strip", "untagged", ""},
		{"-inner-vlan pass -mtu 1450", "tag 10", "tag 10"},
	} {
		t.Run("p2p "+c.flags, func(t *testing.T) {
			p := l.joined(t, c.flags)
			wire := l.a.Capture(l.near, "udp dst port 4789")
			if got := l.offer(t, false, func(text string) []byte { return withTag(note(l.macB, everyone, text), 10) }); got != c.toA {
				t.Errorf("from OVS's guest: %q, want %q", got, c.toA)
			}
			if rows := netns.Fields(t, only(wire.Stop(), false), "vxlan && vlan", "vlan.id", "vxlan.vni"); len(rows) == 0 || rows[0][0] != "10" || rows[0][1] != "9" {
				t.Errorf("in the tunnel: %v", rows)
			}
			if got := l.offer(t, true, func(text string) []byte { return withTag(note(l.macA, everyone, text), 10) }); got != c.toB {
				t.Errorf("from ours: %q, want %q", got, c.toB)
			}
			s := stop(t, p)
			if c.toA == "" && s.Drops["inner-vlan"] == 0 {
				t.Errorf("drops %v", s.Drops)
			}
		})
	}

	// The guest's port of OVS is in VLAN 10 and the tunnel a trunk: what has no tag gets one.
	t.Run("OVS tags", func(t *testing.T) {
		p := l.joined(t, "")
		l.ovs.Set("set", "port", "eth0", "tag=10")
		defer l.ovs.Set("clear", "port", "eth0", "tag")
		l.a.Until("the tag is in the tunnel", func() bool {
			l.gb.Inject("eth0", note(l.macB, everyone, "in VLAN 10."))
			s := ask(t, p)
			return s.Drops["inner-vlan"] > 0
		})
		if got := found(l.onA, "in VLAN 10."); got != "" {
			t.Logf("before OVS had changed: %s", got)
		}
		stop(t, p)
	})

	// The tunnel is an access port of VLAN 10: OVS strips and adds the tag.
	t.Run("OVS strips", func(t *testing.T) {
		p := l.tunnel(t, families[0], "", "tag=10")
		for _, c := range []struct {
			fromA bool
			at    *netns.Capture
			want  string
		}{{false, l.onA, "untagged"}, {true, l.onB, "tag 10"}} {
			text := fmt.Sprintf("VLAN 10 from ours %v.", c.fromA)
			l.a.Until("it arrives "+c.want, func() bool {
				if c.fromA {
					l.ga.Inject("eth0", note(l.macA, everyone, text))
				} else {
					l.gb.Inject("eth0", withTag(note(l.macB, everyone, text), 10))
				}
				time.Sleep(20 * time.Millisecond)
				return found(c.at, text) == c.want
			})
		}
		s := stop(t, p)
		s.wantDrops(t)
	})
	t.Run("trunks", l.trunks)
}

// A VLAN is a VNI: a trunk of ours on one side, and on the other a tunnel of OVS for each
// VLAN.
func (l *ovsLab) trunks(t *testing.T) {
	u := netns.Open(t, l.a, func() (*underlay.UDP, error) {
		return underlay.ListenUDP(netip.MustParseAddrPort("10.0.0.1:4789"), nil)
	})
	v, err := vtep.New(nil, u)
	must(t, err)
	defer v.Close()
	sw, err := vswitch.New(nil)
	must(t, err)
	trunk, err := port.OpenTAP("trunk0", &port.DeviceConfig{Namespace: l.a.NS})
	must(t, err)
	done := make(chan struct{})
	defer func() { sw.Close(); <-done }()
	for _, vlan := range []uint32{10, 20} {
		vsi, err := sw.VSI(frame.VNI(100+vlan), nil)
		must(t, err)
		for _, m := range []struct {
			p   vswitch.Port
			tag uint32
		}{{v, 100 + vlan}, {trunk, vlan}} {
			if _, err := vsi.Attach(m.p, m.tag); err != nil {
				t.Fatal(err)
			}
		}
		must(t, v.SetFlood(frame.VNI(100+vlan), netip.MustParseAddrPort("10.0.0.2:4789")))
	}
	go func() { sw.Run(context.Background()); close(done) }()

	l.ovs.Set("--if-exists", "del-port", "br0", "vx0")
	for _, vlan := range []int{10, 20} {
		l.ovs.VXLAN(fmt.Sprintf("vx%d", vlan), "10.0.0.1", 100+vlan, fmt.Sprintf("tag=%d", vlan))
	}
	on := l.a.Capture("trunk0", "")
	const host = "02:00:00:00:00:99"
	for _, vlan := range []byte{10, 20} {
		wire := l.a.Capture(l.near, "udp dst port 4789")
		text := fmt.Sprintf("of VLAN %d.", vlan)
		l.a.Until("OVS carries VLAN "+fmt.Sprint(vlan), func() bool {
			l.gb.Inject("eth0", withTag(note(l.macB, everyone, text), vlan))
			time.Sleep(20 * time.Millisecond)
			return found(on, text) != ""
		})
		back := "back " + text
		l.a.Until("it comes back", func() bool {
			l.a.Inject("trunk0", withTag(note(host, l.macB, back), vlan))
			time.Sleep(20 * time.Millisecond)
			return found(l.onB, back) != ""
		})
		want := fmt.Sprintf("tag %d", vlan)
		if there, back := found(on, text), found(l.onB, back); there != want || back != want {
			t.Errorf("VLAN %d: arrived as %q and %q", vlan, there, back)
		}
		rows := netns.Fields(t, wire.Stop(), "data", "vxlan.vni", "vlan.id", "data")
		if len(rows) < 2 {
			t.Errorf("in the tunnel: %v", rows)
		}
		for _, r := range rows {
			if r[0] != fmt.Sprint(100+int(vlan)) || r[1] != "" {
				t.Errorf("VLAN %d in the tunnel: %v", vlan, r)
			}
		}
	}
}
