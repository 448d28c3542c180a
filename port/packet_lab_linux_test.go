package port

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// joined is two hosts whose veths end in a third, where a switch joins them through a packet
// port each.
func joined(t *testing.T, ca, cb *PacketConfig) (ha, hb *netns.Host, pa, pb *counted) {
	t.Helper()
	n := netns.New(t)
	ha, hb, m := n.Host("a"), n.Host("b"), n.Host("m")
	m.Quiet()
	n.Link(ha, "10.9.0.1/24,fd09::1/64", m, "")
	n.Link(hb, "10.9.0.2/24,fd09::2/64", m, "")
	m.Ready()
	ha.Ready()
	hb.Ready()
	pa, pb = &counted{Port: openPacket(t, m, "eth0", ca)}, &counted{Port: openPacket(t, m, "eth1", cb)}
	switched(t, []uint32{0, 0}, pa, pb)
	return ha, hb, pa, pb
}

// Superframes and unfinished checksums go through whole, where both ends take them, and
// arrive right in any case.
func TestPacketTCP(t *testing.T) {
	const size = 8 << 20
	for _, c := range []struct {
		name   string
		ca, cb *PacketConfig
		txOff  bool // of the hosts: no superframes, which a port without offloads must drop
	}{
		{"offload", nil, nil, false},
		{"queues", &PacketConfig{Queues: 2}, &PacketConfig{Queues: 3}, false},
		{"off", &PacketConfig{NoOffload: true}, &PacketConfig{NoOffload: true}, true},
		{"one off", nil, &PacketConfig{NoOffload: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ha, hb, pa, pb := joined(t, c.ca, c.cb)
			if c.txOff { // TSO only: checksums stay unfinished
				for _, h := range []*netns.Host{ha, hb} {
					h.Run("ethtool", "-K", "eth0", "tso", "off", "gso", "off")
				}
			}
			for _, addr := range []string{"10.9.0.2", "fd09::2"} {
				ha.Ping(addr, 2)
				ha.Transfer(hb, net.JoinHostPort(addr, "7000"), size)
			}
			noChecksumErrors(t, ha, hb)
			for _, p := range []*counted{pa, pb} {
				t.Logf("%d frames, %d superframes, %d unfinished", p.frames.Load(), p.super.Load(), p.unfinished.Load())
				if p.unfinished.Load() == 0 || (p.tcp4.Load() == 0 || p.tcp6.Load() == 0) != c.txOff {
					t.Errorf("%d superframes of IPv4, %d of IPv6, %d unfinished", p.tcp4.Load(), p.tcp6.Load(), p.unfinished.Load())
				}
			}
		})
	}
}

// tshark checks what the receiver gets: with offloads of the receiving end's veth off, frames
// reach it as they are on a wire.
func TestPacketChecksumsAreRight(t *testing.T) {
	for _, offload := range []bool{true, false} {
		t.Run(fmt.Sprint(offload), func(t *testing.T) {
			// The port to b completes everything itself.
			ha, hb, pa, _ := joined(t, &PacketConfig{NoOffload: !offload}, &PacketConfig{NoOffload: true})
			if !offload {
				ha.Run("ethtool", "-K", "eth0", "tso", "off", "gso", "off")
			}
			hb.TxOff("eth0")
			c := hb.Capture("eth0", "host 10.9.0.1 or host fd09::1")
			for _, addr := range []string{"10.9.0.2", "fd09::2"} {
				// Slowly: what the server has not read when the client ends is lost.
				for _, args := range []string{"-n 400K -b 6M -l 10K", "-n 400K -b 6M -l 10K -R", "-u -n 50K -b 1M"} {
					if got := ha.IPerf(hb, addr, strings.Fields(args)...); got.Bytes == 0 {
						t.Errorf("%s %v: %+v", addr, args, got)
					}
				}
			}
			ps := c.Stop()
			in := ps[:0:0]
			for _, p := range ps {
				if !p.Out {
					in = append(in, p)
				}
			}
			if pa.unfinished.Load() == 0 || pa.super.Load() == 0 == offload {
				t.Errorf("from a: %d unfinished, %d superframes", pa.unfinished.Load(), pa.super.Load())
			}
			rows := netns.Fields(t, in, "tcp or udp", "tcp.checksum.status", "udp.checksum.status", "ip.checksum.status")
			if len(rows) < 400 {
				t.Errorf("%d packets", len(rows))
			}
			for i, r := range rows {
				if s := strings.Join(r, ""); strings.Trim(s, "1") != "" || s == "" { // 1: good
					t.Fatalf("packet %d of %d: %q\n%s", i, len(rows), r, netns.Dump(in[:min(5, len(in))]))
				}
			}
			noChecksumErrors(t, ha, hb)
		})
	}
}

// Superframes of the kernel's vxlan device are dropped under a name, and what the text of
// OpenPacket says to do about it helps.
func TestPacketTunnelsOfTheKernel(t *testing.T) {
	ha, hb, pa, _ := joined(t, nil, nil)
	for i, h := range []*netns.Host{ha, hb} {
		h.Run("ethtool", "-K", "eth0", "tx-udp_tnl-segmentation", "off", "tx-udp_tnl-csum-segmentation", "off")
		h.IP("link", "add", "vx0", "type", "vxlan", "id", "5", "dstport", "4789",
			"local", fmt.Sprintf("10.9.0.%d", i+1), "remote", fmt.Sprintf("10.9.0.%d", 2-i))
		h.Up("vx0")
		h.Addr("vx0", fmt.Sprintf("10.8.0.%d/24", i+1))
	}
	ha.Ping("10.8.0.2", 1)
	ha.Transfer(hb, "10.8.0.2:7000", 1<<20)
	noChecksumErrors(t, ha, hb)
	if n := pa.refused.Load(); n != 0 {
		t.Errorf("%d frames refused", n)
	}
	ha.Run("ethtool", "-K", "eth0", "tx-udp_tnl-segmentation", "on", "tx-udp_tnl-csum-segmentation", "on")
	ha.Transfer(hb, "10.8.0.2:7001", 20<<10) // by segments sent again
	if n := pa.refused.Load(); n == 0 {
		t.Error("no superframe was refused")
	}
}

func TestPacketUDP(t *testing.T) {
	ha, hb, pa, _ := joined(t, nil, nil)
	for _, ip := range []string{"10.9.0.2", "fd09::2"} {
		datagrams(t, ha, hb, ip)
	}
	if pa.udp.Load() == 0 {
		t.Error("no UDP superframes")
	}
	noChecksumErrors(t, ha, hb)
}

// Without a virtio header nobody says how to cut a frame that is longer than the MTU.
func TestPacketNoOffloadRefusesSuperframes(t *testing.T) {
	p, _, far := cabled(t, &PacketConfig{NoOffload: true})
	long := fake.Ethernet(3000, 0)
	far.MTU("eth0", 9000)
	far.Inject("eth0", fake.Ethernet(1514, 0), fake.Tagged(fake.Ethernet(1514, 0), 0, 5))
	far.Run("ethtool", "-K", "eth0", "gso", "on")
	readAll(t, p, 2, func(i int, f *frame.Frame) {
		if f.Drop != 0 || f.Len() != 1514+i*vlanLen {
			t.Errorf("frame %d: %d bytes, %v", i, f.Len(), f.Drop)
		}
	})
	p.dev.MTU.Store(1400) // as if it were so: a veth does not carry what is longer unless it is GSO
	far.Inject("eth0", long[:1414], long[:1415], fake.Tagged(long[:1414], 0, 5), fake.Tagged(long[:1415], 0, 5))
	readAll(t, p, 4, func(i int, f *frame.Frame) {
		if want := []frame.Reason{0, frame.TooBig, 0, frame.TooBig}[i]; f.Drop != want {
			t.Errorf("frame %d: %v, want %v", i, f.Drop, want)
		}
	})
}

// A flow stays in one queue, in order, and every frame is read once.
func TestPacketQueuesKeepFlowsInOrder(t *testing.T) {
	const queues, flows, rounds = 2, 16, 100
	p, _, far := cabled(t, &PacketConfig{Queues: queues})
	var mu sync.Mutex
	var of [flows]map[int]bool
	var next [flows]uint32
	total := 0
	for k, r := range p.Readers() {
		go func() {
			b := frame.NewBatch(nil)
			for r.Read(b) == nil {
				mu.Lock()
				for i := range b.Frames {
					q := b.Frames[i].Bytes()
					flow, n := binary.BigEndian.Uint16(q[34:])-7000, binary.BigEndian.Uint32(q[42:])
					if n != next[flow] {
						t.Errorf("flow %d: frame %d, want %d", flow, n, next[flow])
					}
					next[flow] = n + 1
					if of[flow] == nil {
						of[flow] = map[int]bool{}
					}
					of[flow][k] = true
					total++
				}
				mu.Unlock()
			}
		}()
	}
	for n := range uint32(rounds) {
		var frames [][]byte
		for flow := range uint16(flows) {
			frames = append(frames, udp4(frame.MAC{2, 0, 0, 0, 0, 1}, 7000+flow, 9, binary.BigEndian.AppendUint32(make([]byte, 0, 20), n)))
		}
		far.Inject("eth0", frames...)
	}
	fake.Until(t, "all frames are read", func() bool { mu.Lock(); defer mu.Unlock(); return total == flows*rounds })
	mu.Lock()
	defer mu.Unlock()
	used := map[int]bool{}
	for flow, ks := range of {
		if len(ks) != 1 {
			t.Errorf("flow %d came in through queues %v", flow, ks)
		}
		for k := range ks {
			used[k] = true
		}
	}
	if len(used) != queues {
		t.Errorf("queues %v were used", used)
	}
}
