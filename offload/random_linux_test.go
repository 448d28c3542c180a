package offload

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var turns = flag.Int("turns", 5000, "turns of TestRandom")

// under returns the index of the underlay's device.
func (r *rig) under() int {
	for n := range r.o.devices.with {
		if n.program == datapath.TunnelIn {
			return n.index
		}
	}
	return 1
}

// outer returns a frame of a peer as the packet that carries it to a device.
func outer(t testing.TB, kind encap.Type, p vswitch.Pair, inner []byte, dev int) []byte {
	b := make([]byte, 14+20+8+encap.VXLANLen, 14+20+8+encap.VXLANLen+len(inner))
	copy(b, check.Must(net.InterfaceByIndex(dev))(t).HardwareAddr)
	copy(b[6:], []byte{2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0})
	ip := b[14:34]
	binary.BigEndian.PutUint16(ip[2:], uint16(20+8+encap.VXLANLen+len(inner)))
	ip[8], ip[9] = 64, 17
	from := addr(int(p.From.Peer()) + 1).As4() // peers have the numbers 1, 2, 3
	to := addr(1).As4()
	copy(ip[12:], from[:])
	copy(ip[16:], to[:])
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	udp := b[34:42]
	binary.BigEndian.PutUint16(udp, 50000)
	binary.BigEndian.PutUint16(udp[2:], 4789)
	binary.BigEndian.PutUint16(udp[4:], uint16(8+encap.VXLANLen+len(inner)))
	if kind == encap.TypeGPE {
		encap.PutGPE(b[42:], frame.VNI(p.Tag), frame.Ethernet, false)
	} else {
		encap.PutVXLAN(b[42:], frame.VNI(p.Tag))
	}
	return append(b, inner...)
}

func rigHost(t testing.TB) *netns.Host {
	n := netns.New(t)
	h, far := n.Host("h"), n.Host("far")
	h.Quiet()
	n.Link(h, "192.0.2.1/24", far, "192.0.2.2/24")
	return h
}

// TestRandom: while everything changes that may change decisions, the programs carry no frame but as decided now, and what is
// decided they carry.
func TestRandom(t *testing.T) {
	for _, kind := range []encap.Type{encap.TypeVXLAN, encap.TypeGPE} {
		t.Run(kind.String(), func(t *testing.T) { random(t, kind) })
	}
}

func random(t *testing.T, kind encap.Type) {
	h := rigHost(t)
	r := newRigOf(t, h, nil, kind)
	src := rand.New(rand.NewPCG(1, 2))
	carried := 0
	h.Do(func() {
		carried = r.play(src.IntN, *turns)
	})
	st := check.Must(r.o.Stats())(t)
	t.Logf("%d pairs found carried, %d tuples, %d routed; %+v", carried, r.tuples, r.routed, st)
	if carried < *turns/80 || r.tuples < *turns/600 || r.routed < *turns/400 || st.Renewed == 0 || st.Removed == 0 {
		t.Errorf("hardly anything was carried: %d, %+v", carried, st)
	}
}

// FuzzOffload is TestRandom with turns of the fuzzer's.
func FuzzOffload(f *testing.F) {
	h := rigHost(f)
	r := newRig(f, h)
	f.Add([]byte("a flow is learned, hinted, carried and voided"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r.t = t
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		check.OK(t, h.Enter())
		i := 0
		r.play(func(n int) int {
			if i++; i > len(b) {
				return 0
			}
			return int(b[i-1]) % n
		}, min(len(b)/4, 60))
	})
}

// TestMovedAway: a device that is moved to another network namespace takes its program along. The Offload takes it off and
// the flows out, by itself and at once.
func TestMovedAway(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	n := netns.New(t)
	other := n.Host("other")
	other.Quiet()
	p := r.hosts(r.dests[0], r.dests[1])
	r.o.ended.Go(r.o.run)
	r.o.Hint(p)
	carried := func() uint64 { return check.Must(r.o.Stats())(t).Carried.Frames }
	h.Until("a frame is carried", func() bool { h.Inject("tap0", numbered(macA, macB, 1)); return carried() > 0 })
	h.IP("link", "set", "tap0", "netns", other.NS)
	h.Until("the flow is gone", func() bool { return check.Must(r.o.Stats())(t).Flows == 0 })
	was := carried()
	other.Up("tap0")
	other.Inject("tap0", numbered(macA, macB, 2), numbered(macA, macB, 3))
	if n := carried() - was; n != 0 {
		t.Errorf("%d frames were carried in the other network namespace", n)
	}
	check.OK(t, r.o.Close())
}
