package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// tags are the frames of a test, by what tshark says of them: their protocols behind the
// VXLAN header, and the ids of 802.1Q and 802.1ad tags.
var tags = []struct {
	tags  []byte
	shown [3]string
}{
	{nil, [3]string{"eth:ethertype:data", "", ""}},
	{[]byte{0x81, 0, 0, 5}, [3]string{"eth:ethertype:vlan:ethertype:data", "5", ""}},
	{[]byte{0x81, 0, 0xe0, 6}, [3]string{"eth:ethertype:vlan:ethertype:data", "6", ""}},
	{[]byte{0x88, 0xa8, 0, 7}, [3]string{"eth:ethertype:ieee8021ad:ethertype:data", "", "7"}},
	{[]byte{0x88, 0xa8, 0, 7, 0x81, 0, 0, 8}, [3]string{"eth:ethertype:ieee8021ad:ethertype:vlan:ethertype:data", "8", "7"}},
	{[]byte{0x81, 0, 0, 9, 0x81, 0, 0, 8}, [3]string{"eth:ethertype:vlan:ethertype:vlan:ethertype:data", "9,8", ""}},
}

// tagged returns a frame with tags from one host to all, with room bytes behind its type.
func tagged(src byte, tag []byte, room int) []byte {
	b := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, src}, tag...)
	return append(append(b, 0x88, 0xb5), make([]byte, room)...)
}

// Frames with tags cross whole with -inner-vlan pass, both ways, as long as the tunnel takes
// them; the kernel's vxlan device is the other end, and tshark sees Q-in-VNI.
func TestInnerVLANPass(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			a, b := f.peers(t, netns.VXLAN{Dev: "eth0"})
			p := f.start(t, a, f.mtu-4, "-inner-vlan pass")
			a.Addr("vxs0", "192.168.7.1/24")
			a.Ping("192.168.7.2", 2)
			for _, way := range []struct {
				from, to           *netns.Host
				fromDev, toDev, by string
				src                byte
			}{{a, b, "vxs0", "vx0", "p2p", 9}, {b, a, "vx0", "vxs0", "the kernel", 10}} {
				wire, out := a.Capture("eth0", "udp port 4789"), way.to.Capture(way.toDev, "")
				var frames [][]byte
				for _, x := range tags {
					frames = append(frames, tagged(way.src, x.tags, 100))
				}
				full := tagged(way.src, tags[1].tags, f.mtu-4)
				frames = append(frames, full)
				way.from.Inject(way.fromDev, frames...)
				way.to.Ping(map[*netns.Host]string{a: "192.168.7.2", b: "192.168.7.1"}[way.to], 1)
				var got [][]byte
				for _, x := range out.Stop() {
					if len(x.Data) > 12 && frame.MAC(x.Data[6:12]) == (frame.MAC{2, 5: way.src}) { // a device's own may end alike
						got = append(got, x.Data)
					}
				}
				slices.SortFunc(got, bytes.Compare) // frames of several flows keep no order
				slices.SortFunc(frames, bytes.Compare)
				if !slices.EqualFunc(got, frames, bytes.Equal) {
					t.Errorf("from %s arrived %d frames, not the %d", way.by, len(got), len(frames))
				}
				rows := netns.Fields(t, wire.Stop(), fmt.Sprintf("vxlan.vni == 9 && eth.src == 02:00:00:00:00:%02x", way.src),
					"frame.protocols", "vlan.id", "ieee8021ad.id")
				shown := map[[3]string]int{}
				for _, r := range rows {
					_, inner, _ := strings.Cut(r[0], ":vxlan:")
					shown[[3]string{inner, r[1], r[2]}]++
				}
				want := map[[3]string]int{tags[1].shown: 1} // full is another
				for _, x := range tags {
					want[x.shown]++
				}
				if !maps.Equal(shown, want) {
					t.Errorf("%s: tshark sees %v, want %v", way.by, shown, want)
				}
			}
			if l := stop(t, p); len(l.Drops) != 0 {
				t.Errorf("drops %v", l.Drops)
			}
		})
	}
}

// With -inner-vlan strip what the kernel sends in a VLAN arrives without; by default it is
// dropped.
func TestInnerVLANStrip(t *testing.T) {
	f := families[0]
	for _, mode := range []string{"strip", "discard"} {
		t.Run(mode, func(t *testing.T) {
			a, b := f.peers(t, netns.VXLAN{Dev: "eth0"})
			p := f.start(t, a, f.mtu, "-inner-vlan "+mode)
			a.Quiet()
			seen := a.Capture("vxs0", "ether proto 0x88b5 or vlan")
			b.Inject("vx0", tagged(9, tags[1].tags, 60))
			if mode == "strip" {
				seen.Want(1, nil)
			} else {
				a.Until("the frame was counted", func() bool { return ask(t, p).Drops["inner-vlan"] == 1 })
			}
			got := seen.Stop()
			l := stop(t, p)
			switch {
			case mode == "discard" && (len(got) != 0 || l.Drops["inner-vlan"] != 1):
				t.Errorf("%d frames, drops %v", len(got), l.Drops)
			case mode == "strip" && (len(got) != 1 || got[0].Data[12] != 0x88 || len(got[0].Data) != 74):
				t.Errorf("%+v, drops %v", got, l.Drops)
			}
		})
	}
}

// Of many broadcasts at once a second's worth crosses.
func TestStorm(t *testing.T) {
	f := families[0]
	a, b := f.peers(t, netns.VXLAN{Dev: "eth0"})
	p := f.start(t, a, f.mtu, "-storm broadcast=5")
	a.Addr("vxs0", "192.168.7.1/24")
	a.Ping("192.168.7.2", 1)
	wire := a.Capture("eth0", "udp port 4789")
	one := tagged(9, nil, 60)
	frames := slices.Repeat([][]byte{one}, 500)
	a.Inject("vxs0", frames...)
	b.Ping("192.168.7.1", 2) // known unicast passes all the same
	a.Until("all were counted", func() bool { l := ask(t, p); return l.Drops["storm"]+l.Flood.Broadcast >= 500 })
	crossed := 0
	for _, x := range wire.Stop() {
		if strings.Contains(string(x.Data), string(one[:14])) {
			crossed++
		}
	}
	// The rest of the bucket, and five for each second this took.
	if l := stop(t, p); crossed < 1 || crossed > 40 || l.Drops["storm"] < 460 {
		t.Errorf("%d of 500 crossed, drops %v", crossed, l.Drops)
	}
}
