package bench

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// judged puts a policy into the slot Ingress of the bed, and on its port UDP packets of a
// number of flows between 1000 hosts on either side.
func (r *bed) judged(tb testing.TB, cfg *policy.Config, flows int) *policy.Policy {
	r.talk(1000, 64)
	r.port.Packets = nil
	for i := range flows {
		from, to := i%1000, (i*7+3)%1000
		b := rig.Packet(rig.MAC(1, to), rig.MAC(0, from), 64)
		h := wire.IPv4Header{TTL: 64, Protocol: wire.ProtoUDP, DF: true, TotalLen: 50,
			Src: [4]byte{10, 0, byte(from >> 8), byte(from)}, Dst: [4]byte{10, 1, byte(to >> 8), byte(to)}}
		h.Put(b[14:])
		port := 1024 + i/1000
		b[34], b[35], b[36], b[37], b[39] = byte(port>>8), byte(port), 0x4e, 0x20, 30 // to 20000
		r.port.Packets = append(r.port.Packets, b)
	}
	if cfg == nil {
		return nil
	}
	p, err := policy.New(cfg)
	must(tb, err)
	must(tb, r.vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Ingress: p.Ingress()}}))
	r.port.Run(flows/frame.MaxBatch + 1)
	return p
}

// rules returns a list of rules with prefixes, protocols and ports of which only the last
// matches what judged sends.
func rules(n int, stateless bool) *policy.Config {
	cfg := &policy.Config{Default: policy.Deny, Stateless: stateless, MaxFlows: 200_000}
	for i := range n - 1 {
		cfg.Rules = append(cfg.Rules, policy.Rule{
			Action:   policy.Action(i % 2),
			Src:      []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i % 2), byte(i / 2), 0}), 24)},
			Dst:      []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i % 3), byte(i / 3), byte(i)}), 32)},
			Protocol: []uint8{wire.ProtoTCP, wire.ProtoUDP}[i%2],
			DstPorts: []policy.PortRange{{First: uint16(i * 10), Last: uint16(i*10 + 5)}},
		})
	}
	cfg.Rules = append(cfg.Rules, policy.Rule{Name: "last", Src: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Protocol: wire.ProtoUDP, DstPorts: []policy.PortRange{{First: 20000, Last: 20001}}})
	return cfg
}

// BenchmarkPolicy is a whole worker in memory, 64-byte UDP packets from a local port to the
// tunnel, without a policy and with 10 and 1000 rules, stateless and with flows tracked.
func BenchmarkPolicy(b *testing.B) {
	run := func(name string, cfg *policy.Config, flows int) {
		var r *bed
		whole := b
		b.Run(name, func(b *testing.B) {
			if r == nil {
				r = newBed(whole)
				p := r.judged(b, cfg, flows)
				if n := flows; p != nil && !cfg.Stateless && p.Stats().Flows.Tracked != n {
					b.Fatalf("%d flows of %d", p.Stats().Flows.Tracked, n)
				}
				b.ResetTimer()
			}
			perFrame(b, r.port.Source)
		})
	}
	for _, flows := range []int{1000, 100_000} {
		run(fmt.Sprintf("off/%d", flows), nil, flows)
		for _, n := range []int{10, 1000} {
			run(fmt.Sprintf("stateless-%d/%d", n, flows), rules(n, true), flows)
			run(fmt.Sprintf("stateful-%d/%d", n, flows), rules(n, false), flows)
		}
	}
}

// Every frame passes, and nothing is allocated.
func TestPolicy(t *testing.T) {
	for _, stateless := range []bool{true, false} {
		r := newBed(t)
		p := r.judged(t, rules(1000, stateless), 1000)
		r.wire.Copies = 0
		r.port.Run(100)
		if r.wire.Copies != 100*frame.MaxBatch {
			t.Fatalf("%d of %d frames: %+v", r.wire.Copies, 100*frame.MaxBatch, p.Stats().Default)
		}
		least := ^uint64(0)
		for range 5 {
			least = min(least, mallocs(func() { r.port.Run(1000) }))
		}
		if least > 50 {
			t.Errorf("%d allocations in 1000 batches", least)
		}
	}
}
