package main

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"
)

// A testCase is one kind of traffic over one kind of underlay.
type testCase struct {
	name, about string
	underlay    underlay
	metrics     []string
	measure     measure
	among       []string // the contenders; nil: all that are not special
}

func (c testCase) String() string { return c.name }

// base is the contender to whose medians the others' are put in relation.
func (c testCase) base() string {
	if c.among == nil {
		return "kernel"
	}
	return c.among[0]
}

// of returns those of some contenders that the case is for.
func (c testCase) of(some []contender) (cs []contender) {
	for _, x := range some {
		if slices.Contains(c.among, x.name) || c.among == nil && !x.special {
			cs = append(cs, x)
		}
	}
	return cs
}

// A measure returns a value for each metric of its case, NaN where there is none.
type measure func(ctx context.Context, l *lab, seconds int) ([]float64, error)

func cases() []testCase {
	veth, plain := underlay{mtu: 1500}, underlay{mtu: 1500, plain: true}
	jumbo, plainJumbo := underlay{mtu: 9000}, underlay{mtu: 9000, plain: true}
	stream := []string{"Gbit/s", "CPU s/GB", "tunnel CPU s/GB"}
	latency := []string{"transactions/s", "p50 us", "p99 us", "p99.9 us"}
	packets := []string{"kpps", "kpps, loss <1%", "CPU s/Mpkt", "tunnel CPU s/Mpkt"}
	gpe, tun, ipip := []string{judged, "gpe"}, []string{"kernel-gpe", "gpe-tun"}, []string{"ipip-lone", "ipip-plain", "ipip"}
	sockets := []string{"udp", "packet"}
	hosts := []string{"kernel-host", "vxswitch-host", "vxswitch-flows-host"}
	peers := []string{"ovs", "ovs-vxswitch", "vxswitch-ovs"}
	return []testCase{
		{"tcp1", "one TCP flow", veth, stream, tcp(1), nil},
		{"tcp4", "four TCP flows", veth, stream, tcp(4), nil},
		{"tcp1-off", "one TCP flow, underlay without offloads", plain, stream, tcp(1), nil},
		{"tcp4-off", "four TCP flows, underlay without offloads", plain, stream, tcp(4), nil},
		{"tcp1-9000", "one TCP flow, underlay with an MTU of 9000", jumbo, stream, tcp(1), nil},
		{"tcp4-9000", "four TCP flows, underlay with an MTU of 9000", jumbo, stream, tcp(4), nil},
		{"tcp1-9000-off", "one TCP flow, underlay with an MTU of 9000, without offloads", plainJumbo, stream, tcp(1), nil},
		{"tcp4-9000-off", "four TCP flows, underlay with an MTU of 9000, without offloads", plainJumbo, stream, tcp(4), nil},
		{"udp64", "UDP, 64 bytes of payload", veth, packets, udp(64), nil},
		{"udp1400", "UDP, 1400 bytes of payload", veth, packets, udp(1400), nil},
		{"udp4", "four UDP flows, 1400 bytes of payload", veth, stream, iperf("-u", "-b", "0", "-l", "1400", "-P", "4"), nil},
		{"rr", "TCP, a byte there and back", veth, latency, rr, nil},
		{"pairs", "1,000 hosts that talk in 5,000 pairs, drawn by chance, beside one pair; UDP, 64 bytes of payload", veth,
			[]string{"kpps", "CPU s/Mpkt", "flow entries", "% lost"}, talks, []string{"flows-one", "flows-many"}},
		{"idle", "memory of the tunnel's process at the first end, without traffic", veth, []string{"MiB resident"}, idle, nil},
		{"host-tcp1", "one TCP flow, the hosts as guests", veth, stream, tcp(1), hosts},
		{"host-tcp4", "four TCP flows, the hosts as guests", veth, stream, tcp(4), hosts},
		{"host-tcp1-off", "one TCP flow, the hosts as guests, underlay without offloads", plain, stream, tcp(1), hosts},
		{"host-udp64", "UDP, 64 bytes of payload, the hosts as guests", veth, packets, udp(64), hosts},
		{"host-rr", "TCP, a byte there and back, the hosts as guests", veth, latency, rr, hosts},
		{"ovs-tcp1", "one TCP flow, Open vSwitch as the peer", veth, stream, tcp(1), peers},
		{"ovs-tcp4", "four TCP flows, Open vSwitch as the peer", veth, stream, tcp(4), peers},
		{"ovs-udp1400", "UDP, 1400 bytes of payload, Open vSwitch as the peer", veth, packets, udp(1400), peers},
		{"ovs-udp4", "four UDP flows, 1400 bytes of payload, Open vSwitch as the peer", veth, stream, iperf("-u", "-b", "0", "-l", "1400", "-P", "4"), peers},
		{"portable-tcp1", "one TCP flow, the portable underlay beside that of Linux", veth, stream, tcp(1), []string{"udp", "portable"}},
		{"portable-udp64", "UDP, 64 bytes of payload, the portable underlay beside that of Linux", veth, packets, udp(64), []string{"udp", "portable"}},
		{"gpe-tcp1", "one TCP flow, VXLAN-GPE beside VXLAN", veth, stream, tcp(1), gpe},
		{"gpe-udp64", "UDP, 64 bytes of payload, VXLAN-GPE beside VXLAN", veth, packets, udp(64), gpe},
		{"tun-tcp1", "one TCP flow, VXLAN-GPE without Ethernet", veth, stream, tcp(1), tun},
		{"tun-udp64", "UDP, 64 bytes of payload, VXLAN-GPE without Ethernet", veth, packets, udp(64), tun},
		{"ipip-tcp1", "one TCP flow, IP in IP without batches and with", veth, stream, tcp(1), ipip},
		{"ipip-udp64", "UDP, 64 bytes of payload, IP in IP without batches and with", veth, packets, udp(64), ipip},
		{"packet-tcp1", "one TCP flow, UDP sockets and packet sockets", veth, stream, tcp(1), sockets},
		{"packet-tcp4", "four TCP flows, UDP sockets and packet sockets", veth, stream, tcp(4), sockets},
		{"packet-tcp1-off", "one TCP flow, UDP sockets and packet sockets, underlay without offloads", plain, stream, tcp(1), sockets},
		{"packet-udp64", "UDP, 64 bytes of payload, UDP sockets and packet sockets", veth, packets, udp(64), sockets},
		{"packet-udp1400", "UDP, 1400 bytes of payload, UDP sockets and packet sockets", veth, packets, udp(1400), sockets},
		{"packet-rr", "TCP, a byte there and back, UDP sockets and packet sockets", veth, latency, rr, sockets},
		{"packet-idle", "memory of the tunnel's process at the first end, UDP sockets and packet sockets", veth, []string{"MiB resident"}, idle, sockets},
		{"packet-ports", "1024 flows, UDP sockets and packet sockets", veth, []string{"outer source ports", "% of flows on the busiest of 16 paths"},
			ports, sockets},
	}
}

func tcp(flows int) measure { return iperf("-P", strconv.Itoa(flows)) }

// iperf is what iperf3 measures with some flags.
func iperf(args ...string) measure {
	return func(ctx context.Context, l *lab, seconds int) ([]float64, error) {
		t, spent, err := l.iperf(ctx, seconds, args...)
		all, own := l.per(spent, float64(t.Bytes)/1e9)
		return []float64{t.BitsPerSecond / 1e9, all, own}, err
	}
}

// udp sends packets of a size as fast as it can, which is where the costs are from;
// then it looks for the rate that is just not too much.
func udp(size int) measure {
	return func(ctx context.Context, l *lab, seconds int) ([]float64, error) {
		f, err := l.flood(ctx, size, time.Duration(seconds)*time.Second, 0)
		if err != nil {
			return nil, err
		}
		best := f.kilopacks()
		if f.loss() >= tolerable {
			best, err = lossless(f.offered(), func(kpps float64) (flood, error) { return l.flood(ctx, size, probe, kpps) })
		}
		all, own := l.per(f.cpu, f.megapacks())
		return []float64{f.kilopacks(), best, all, own}, err
	}
}

const (
	tolerable = 0.01 // loss, of 1
	probes    = 6    // rates to try, once or twice
	span      = 32   // how far below full speed the search begins
	probe     = time.Second / 2
)

// lossless looks for the highest rate with a tolerable loss below one that has more,
// and returns what was received at it, NaN if there was none: six bisections of
// a ratio of 32, after which the bounds are 6% apart. A rate is too much when it is so
// twice: on a busy machine a receiver that gets no processor for a moment loses too.
func lossless(above float64, try func(kpps float64) (flood, error)) (float64, error) {
	best, below := math.NaN(), above/span
	for range probes {
		rate := math.Sqrt(below * above)
		t, err := try(rate)
		if err == nil && t.loss() >= tolerable {
			t, err = try(rate)
		}
		if err != nil {
			return best, err
		}
		if t.loss() < tolerable {
			below, best = rate, t.kilopacks()
		} else {
			above = rate
		}
	}
	return best, nil
}

func rr(ctx context.Context, l *lab, seconds int) ([]float64, error) {
	t, err := l.rr(ctx, strconv.Itoa(seconds)+"s")
	return []float64{t.PerSecond, t.P50, t.P99, t.P999}, err
}
