package node

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Four attachments, three of them VLAN 10, a service VLAN 20 and untagged frames of one port, beside a bridge of the kernel with
// four ports: whatever hosts send and wherever they move, the same frames leave by the same ones.
func TestMembersOfOnePort(t *testing.T) {
	l := newLab(t)
	s := l.quiet("node", "192.0.2.1", &Config{})
	trunk, access, kernel := l.n.Host("trunk"), l.n.Host("access"), l.n.Host("kernel")
	for _, h := range []*netns.Host{trunk, access, kernel} {
		h.Quiet()
	}
	toTrunk, _ := l.n.Link(s.h, "", trunk, "")
	toAccess, _ := l.n.Link(s.h, "", access, "")
	type end struct {
		ours, theirs *netns.Host
		tag          uint32 // EtherType and VLAN
	}
	ends := []end{{ours: trunk, tag: 0x8100<<16 | 10}, {ours: trunk, tag: 0x88a8<<16 | 20}, {ours: trunk}, {ours: access}}
	var ports []string
	for i := range ends {
		h := l.n.Host(fmt.Sprint("k", i))
		h.Quiet()
		dev, _ := l.n.Link(kernel, "", h, "")
		ends[i].theirs, ports = h, append(ports, dev)
	}
	kernel.Bridge("br0", ports...)
	s.must(parse(t, fmt.Sprintf(`{"ports": [{"name": %q, "type": "interface"}, {"name": %q, "type": "interface"}],
	  "segments": [{"vni": 7, "flaps": 255, "members": [{"port": %[1]q, "vlan": 10}, {"port": %[1]q, "vlan": 20, "service": true}, {"port": %[1]q}, {"port": %[2]q}]}]}`, toTrunk, toAccess)))

	ourSeen := map[*netns.Host]*netns.Capture{trunk: trunk.Capture("eth0", ""), access: access.Capture("eth0", "")}
	var theirSeen []*netns.Capture
	for _, e := range ends {
		theirSeen = append(theirSeen, e.theirs.Capture("eth0", ""))
	}
	const etherType = 0x88b5
	r := rand.New(rand.NewPCG(25, 8))
	var sent, busy uint64
	for id := range 300 {
		dst := frame.MAC{2, 0, 0, 0, 0, byte(r.IntN(6))}
		if r.IntN(6) == 0 {
			dst = frame.Broadcast
		}
		e := ends[r.IntN(len(ends))]
		b := append(dst[:], 2, 0, 0, 0, 0, byte(r.IntN(6)))
		rest := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, etherType), uint32(id))
		rest = append(rest, make([]byte, 42)...)
		e.theirs.Inject("eth0", append(slices.Clone(b), rest...))
		if e.tag != 0 {
			b = binary.BigEndian.AppendUint32(b, e.tag)
		}
		b = append(b, rest...)
		// A frame is learned from before the next comes. If the FDB was locked just then, as while it is swept, it is sent again.
		for again := true; again; {
			e.ours.Inject("eth0", b)
			sent++
			time.Sleep(2 * time.Millisecond)
			var vsi vswitch.VSIStats
			s.h.Until("the frame was handled", func() bool {
				stats, rx := s.Switch().Stats(), uint64(0)
				for _, p := range stats.Ports {
					rx += p.Rx.Frames
				}
				vsi = stats.VSIs[0]
				return rx >= sent
			})
			again, busy = vsi.FDB.Busy != busy, vsi.FDB.Busy
		}
	}
	// left returns the frames that left, sorted, by end.
	left := func(list []netns.Packet, of func(tag uint32) int, to [][]uint32) {
		for _, p := range list {
			if p.Out || len(p.Data) < 60 {
				continue
			}
			b, tag := p.Data[12:], uint32(0)
			if t := binary.BigEndian.Uint16(b); t != etherType {
				tag, b = binary.BigEndian.Uint32(b), b[4:]
			}
			if i := of(tag); i >= 0 && binary.BigEndian.Uint16(b) == etherType {
				to[i] = append(to[i], binary.BigEndian.Uint32(b[2:]))
			} else if binary.BigEndian.Uint16(b) == etherType {
				t.Errorf("left with tag %#x", tag)
			}
		}
	}
	ours, theirs := make([][]uint32, len(ends)), make([][]uint32, len(ends))
	for h, c := range ourSeen {
		left(c.Stop(), func(tag uint32) int {
			return slices.IndexFunc(ends, func(e end) bool { return e.ours == h && e.tag == tag })
		}, ours)
	}
	for i, c := range theirSeen {
		left(c.Stop(), func(uint32) int { return i }, theirs)
	}
	for i, e := range ends {
		ours[i] = slices.Compact(ours[i])
		if !slices.Equal(ours[i], theirs[i]) || len(ours[i]) < 30 {
			t.Errorf("tag %#x: frames %v, by the kernel's bridge %v", e.tag, ours[i], theirs[i])
		}
	}
}
