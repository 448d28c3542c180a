package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/vtep"
)

// markings returns the distinct values of a field of packets in a capture.
func markings(t *testing.T, ps []netns.Packet, filter, field string) (list []string) {
	t.Helper()
	for _, r := range netns.Fields(t, ps, filter, field) {
		list = append(list, r[0])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Against vxlan devices of the kernel's, one segment for each way to mark: the outer DSCP is that of the inner packet (tos inherit of
// both), is fixed and goes to the inner packet on receipt, and is the priority of a trunk's tag. tshark has read the packets.
func TestMarkings(t *testing.T) {
	l := newLab(t)
	far := l.plug("far", "192.0.2.2").h
	for id, tos := range map[int]string{10: "inherit", 20: "0x48", 30: "0x60"} {
		vx := netns.VXLAN{ID: id, Local: "192.0.2.2", Remote: "192.0.2.1", Dev: "eth0", Args: []string{"tos", tos}}
		dev := fmt.Sprint("vx", id)
		if id != 30 {
			vx.Addr = fmt.Sprintf("10.0.%d.2/24", id)
		}
		far.VXLAN(dev, vx)
	}
	s := l.start("node", "192.0.2.1", parse(t, `{"tunnels": [{"name": "vx", "local": "192.0.2.1", "tos": 16}],
	  "ports": [{"name": "tap1", "mtu": 1450}, {"name": "tap2", "mtu": 1450}, {"name": "tap3", "mtu": 1450}],
	  "segments": [
	    {"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2"], "tos": "inherit", "members": [{"port": "tap1"}]},
	    {"vni": 20, "tunnel": "vx", "flood": ["192.0.2.2"], "dscp": "inherit", "members": [{"port": "tap2"}]},
	    {"vni": 30, "tunnel": "vx", "flood": ["192.0.2.2"], "tos": "priority", "dscp": "priority", "members": [{"port": "tap3", "vlan": 5}]}]}`))
	g1, g2, g3 := s.guest("tap1", "10.0.10.1/24", ""), s.guest("tap2", "10.0.20.1/24", ""), s.guest("tap3", "", "")
	equal := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	ping := func(g *netns.Host, tap, to, tos string) (outer, inner []netns.Packet) {
		t.Helper()
		g.Ping(to, 1)
		under, over := s.h.Capture("eth0", "udp"), g.Capture(tap, "icmp")
		g.Run("ping", "-c3", "-i0.1", "-W5", "-Q", tos, to) // the kernel answers with the same TOS
		return under.Stop(), over.Stop()
	}
	const request, answer = "icmp.type==8", "icmp.type==0"
	under, over := ping(g1, "tap1", "10.0.10.2", "0xb8")
	equal("inherited, to and fro: outer, inner", markings(t, under, "icmp", "ip.dsfield"), "0xb8,0xb8")
	equal("inherited: the guest", markings(t, over, answer, "ip.dsfield"), "0xb8")

	under, over = ping(g2, "tap2", "10.0.20.2", "0xb8")
	equal("as the tunnel has it", markings(t, under, request, "ip.dsfield"), "0x10,0xb8")
	equal("what the kernel sends", markings(t, under, answer, "ip.dsfield"), "0x48,0xb8")
	equal("what the guest gets", markings(t, over, answer, "ip.dsfield"), "0x48")
	equal("with a checksum that is", markings(t, over, answer, "ip.checksum.status"), "1") // good

	frame := bytes.Repeat([]byte{0xff}, 6)
	frame = append(frame, 2, 0, 0, 0, 9, 9, 0x88, 0xb5)
	frame = append(frame, bytes.Repeat([]byte("marked"), 10)...)
	tagged := func(priority uint16) []byte {
		return slices.Insert(slices.Clone(frame), 12, binary.BigEndian.AppendUint16([]byte{0x81, 0}, priority<<13|5)...)
	}
	wire1, tap := s.h.Capture("eth0", "udp"), g3.Capture("tap3", "")
	g3.Inject("tap3", tagged(5), tagged(0), tagged(7))
	ps := wire1.Want(3, func(p netns.Packet) bool { return bytes.Contains(p.Data, []byte("marked")) })
	equal("to the tunnel", markings(t, ps, "ip.src==192.0.2.1 && vxlan", "ip.dsfield"), "0x00", "0xa0", "0xe0")
	far.Inject("vx30", frame)
	got := tap.Want(1, func(p netns.Packet) bool { return bytes.Equal(p.Data, tagged(3)) })
	equal("from the tunnel", markings(t, got[len(got)-1:], "vlan", "vlan.priority"), "3")
	tap.Stop()
	wire1.Stop()

	// Other settings apply at once, and leave the tunnel as it is.
	vx := s.Tunnels()["vx"]
	s.must(changed(t, s.Config(), func(c *Config) { c.Segments[0].TOS, c.Segments[1].DSCP = vtep.TOSZero, vtep.DSCPKeep }))
	under, _ = ping(g1, "tap1", "10.0.10.2", "0xb8")
	equal("none", markings(t, under, request, "ip.dsfield"), "0x00,0xb8")
	_, over = ping(g2, "tap2", "10.0.20.2", "0xb8")
	equal("kept", markings(t, over, answer, "ip.dsfield"), "0xb8")
	s.must(changed(t, s.Config(), func(c *Config) { c.Segments[0].Marking = vtep.Marking{} }))
	under, _ = ping(g1, "tap1", "10.0.10.2", "0xb8")
	equal("as the tunnel has it", markings(t, under, request, "ip.dsfield"), "0x10,0xb8")
	if s.Tunnels()["vx"] != vx {
		t.Error("the tunnel was made anew")
	}
	// A segment that leaves the tunnel, or goes, takes its marking along.
	p, err := vx.AddPeer(netip.MustParseAddrPort("192.0.2.2:4789"))
	must(t, err)
	defer vx.DeletePeer(p)
	marked := func(vni uint32, tos vtep.Value, dscp vtep.DSCP) {
		t.Helper()
		path, err := vx.Path(p, vni)
		must(t, err)
		if path.Header.TOS != tos || path.DSCP != dscp {
			t.Errorf("VNI %d: TOS %v, DSCP %v, want %v, %v", vni, path.Header.TOS, path.DSCP, tos, dscp)
		}
	}
	s.must(changed(t, s.Config(), func(c *Config) { c.Segments[1].Marking = vtep.Marking{TOS: 32, DSCP: vtep.DSCPInherit} }))
	marked(20, 32, vtep.DSCPInherit)
	marked(30, vtep.FromPriority, vtep.DSCPPriority)
	s.must(changed(t, s.Config(), func(c *Config) {
		c.Segments[1].Tunnel, c.Segments[1].Flood, c.Segments[1].Marking = "", nil, vtep.Marking{}
		c.Segments = c.Segments[:2]
	}))
	marked(20, 16, vtep.DSCPKeep)
	marked(30, 16, vtep.DSCPKeep)
}

func TestMarkingSettings(t *testing.T) {
	for text, want := range map[string]string{
		`{"segments": [{"vni": 1, "tos": 8}]}`:                                                              `segments[0].tos: the segment has no tunnel`,
		`{"segments": [{"vni": 1, "dscp": "keep"}]}`:                                                        `segments[0].dscp: the segment has no tunnel`,
		`{"ports": [{"name": "t"}], "segments": [{"vni": 1, "members": [{"port": "t", "service": true}]}]}`: `segments[0].members[0].service: requires a vlan`,
		`{"ports": [{"name": "t"}], "segments": [{"vni": 1, "members": [{"port": "t", "vlan": 5, "service": true}]}, {"vni": 2, "members": [{"port": "t", "vlan": 5}]}, {"vni": 3, "members": [{"port": "t", "vlan": 5, "service": true}]}]}`: `segments[2].members[0].port: t service vlan 5 is already in VNI 1`,
		`{"segments": [{"vni": 1, "tos": 7}]}`:                            `segments[0].tos: 7: must be a multiple of 4; the two low bits are ECN`,
		`{"segments": [{"vni": 1, "dscp": "copy"}]}`:                      `segments[0].dscp: "copy": must be one of default, keep, inherit, priority`,
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "dscp": 1}]}`:    `tunnels[0].dscp: 1: must be a string`,
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "tos": "pcp"}]}`: `tunnels[0].tos: "pcp": must be a number up to 255 or a word such as "inherit"`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant\n%s", text, err, want)
		}
	}
}
