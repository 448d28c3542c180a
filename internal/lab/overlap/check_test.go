package overlap

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// check says what must hold after everything has overlapped.
func (c *crowd) check() {
	var d diff
	arrived := 0
	for id, a := range c.actors {
		arrived += c.checkHost(&d, id, a)
	}
	if len(c.actors) > 4 && arrived < len(c.actors) {
		d.addf("only %d frames have arrived at %d hosts", arrived, len(c.actors))
	}
	var copies, came uint64
	for i, n := range c.nodes {
		tx, rx := c.checkNode(&d, i, n)
		copies, came = copies+tx, came+rx
	}
	net := c.Net.Stats()
	if lost := net.Lost + net.Cut + net.NoListener + net.Overflow; copies != net.Delivered+lost {
		d.addf("network: %d copies sent, %d delivered and %d lost", copies, net.Delivered, lost)
	}
	if came != net.Delivered || net.InFlight != 0 || net.TooBig != 0 {
		d.addf("network: %d datagrams came in, %+v", came, net)
	}
	if len(d) > 0 {
		c.t.Errorf("%v\t%s", c.top, strings.Join(d, "\n\t"))
	}
}

// checkHost looks at what a host got, and returns how many frames that is.
func (c *crowd) checkHost(d *diff, id int, a *actor) (n int) {
	who := hostName(id)
	vnis := map[uint32]frame.VNI{}
	for _, p := range a.plugs {
		vnis[p.tag] = c.top.nets[p.net].vni
	}
	times := map[uint64]int{}
	last := map[string]uint64{}
	for _, h := range a.all {
		for _, b := range h.got {
			n++
			tag := uint32(0)
			if binary.BigEndian.Uint16(b[12:]) == 0x8100 {
				tag = uint32(binary.BigEndian.Uint16(b[14:]))
				b = append(append([]byte(nil), b[:12]...), b[16:]...)
			}
			number, vni := binary.BigEndian.Uint64(b[14:]), frame.VNI(binary.BigEndian.Uint32(b[22:]))
			from := int(number >> 32)
			if in, ok := vnis[tag]; !ok || in != vni {
				d.addf("%s: frame %x of VNI %d came with tag %d", who, number, vni, tag)
			}
			if a.wanders {
				continue
			}
			if times[number]++; times[number] > 1 {
				d.addf("%s: frame %x came %d times", who, number, times[number])
			}
			if from == id {
				d.addf("%s: got its own frame %x", who, number)
			}
			flow := fmt.Sprintf("%d %x %d", from, b[:12], vni)
			if !c.actors[from].wanders && number < last[flow] {
				d.addf("%s: frame %x came after %x", who, number, last[flow])
			}
			last[flow] = number
		}
	}
	return n
}

// checkNode looks at a node's counters. It returns the copies its VTEP sent and the
// datagrams it took.
func (c *crowd) checkNode(d *diff, i int, n *node) (copies, came uint64) {
	var under uint64
	for _, u := range n.under {
		st := u.Stats()
		copies += st.TxDatagrams
		came += st.RxDatagrams
		under += st.TxDatagrams + st.Lost()
	}
	vs := n.VTEP.Stats()
	var tx, rx uint64
	for _, p := range vs.Peers {
		tx += p.Tx.Frames
		rx += p.Rx.Frames
	}
	if tx != under {
		d.addf("node%d: peers say %d copies, the underlay %d", i, tx, under)
	}
	st := n.Stats()
	var floods vswitch.Flooded
	var drops frame.Drops
	for _, p := range st.Ports {
		who := fmt.Sprintf("node%d %s", i, p.Name)
		d.accounted(who, p)
		floods.Broadcast += p.Flood.Broadcast
		floods.Multicast += p.Flood.Multicast
		floods.Unknown += p.Flood.Unknown
		for r := range drops {
			drops[r] += p.RxDrops[r] + p.TxDrops[r]
		}
		if p.Name == "vtep" {
			d.same(who+" in", p.Rx.Frames, came)
			refused := p.RxDrops[frame.UnknownVNI] + p.RxDrops[frame.UnknownPeer]
			unnumbered := vs.PeerLimit + vs.PeerBusy
			// The VTEP may take a frame while its network is just being left.
			if p.Rx.Frames < rx || p.Rx.Frames > rx+refused+unnumbered {
				d.addf("%s: %d frames in, from peers %d, unnumbered %d, refused %d", who, p.Rx.Frames, rx, unnumbered, refused)
			}
		}
		for _, a := range c.actors {
			if !a.restless && hostName(a.id) == p.Name {
				d.same(who+" in", p.Rx.Frames, len(a.sent))
				d.same(who+" out", p.Tx.Frames, a.got())
			}
		}
	}
	if c.top.seed%2 == 1 {
		return copies, came // ports have gone, and taken their counters along
	}
	var inVSIs vswitch.Flooded
	for _, v := range st.VSIs {
		inVSIs.Broadcast += v.Flood.Broadcast
		inVSIs.Multicast += v.Flood.Multicast
		inVSIs.Unknown += v.Flood.Unknown
		for r := range drops {
			drops[r] -= v.Drops[r]
		}
	}
	d.same(fmt.Sprintf("node%d flooded", i), inVSIs, floods)
	// What is in no VSI is in none of their counters.
	for _, r := range []frame.Reason{frame.UnknownVLAN, frame.UnknownVNI, frame.UnknownPeer} {
		drops[r] = 0
	}
	d.drops(fmt.Sprintf("node%d, ports less VSIs", i), drops, frame.Drops{})
	return copies, came
}
