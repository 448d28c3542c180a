package kernel

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// sendDifferences are those of packets on their way into the tunnel.
var sendDifferences = []difference{
	{field: "packets", packets: []string{"tagged"}, kernel: "1", ours: "0", rule: innerVLAN},
	{field: "packets", packets: []string{"LLDP"}, kernel: "1", ours: "0", rule: bridgeGroup},
	{only: "IPv4", setting: "defaults", field: "DF", kernel: "false", ours: "true", rule: defaultDF},
	{only: "IPv4", setting: "defaults", field: "checksum", kernel: "right", ours: "zero", rule: defaultChecksum},
	{only: "IPv4", setting: "inherit", packets: []string{"ARP", "no IP"}, field: "DF", kernel: "false", ours: "true", rule: inheritDF},
	{setting: "defaults", packets: []string{"IPv4 CE", "IPv6 CE"}, field: "ECN", kernel: "ECT(0)", ours: "CE", rule: ecnOut},
	{only: "IPv6", field: "flow label", kernel: "0", ours: "set", rule: flowLabel},
}

// The same frames into both, under every setting: what leaves must be the same.
func TestSendSettings(t *testing.T) {
	l := newLedger(t, sendDifferences)
	for _, x := range underlays {
		fam := x.fam
		on, off := "udpcsum", "noudpcsum"
		normal := off
		if fam.v6 {
			on, off = "noudp6zerocsumtx", "udp6zerocsumtx"
			normal = on
		}
		for _, c := range []struct {
			name string
			settings
		}{
			{"defaults", settings{}},
			{"fixed", settings{
				args:   []string{"ttl", "7", "tos", "0x48", "df", "set", normal},
				header: vtep.Header{TTL: 7, TOS: 0x48, ECN: vtep.ECNRFC3168},
			}},
			{"inherit", settings{
				args:   []string{"ttl", "inherit", "tos", "inherit", "df", "inherit", normal},
				header: vtep.Header{TTL: vtep.Inherit, TOS: vtep.Inherit, DF: vtep.DFInherit, ECN: vtep.ECNRFC3168},
			}},
			{"DF unset", settings{
				args:   []string{"df", "unset", normal},
				header: vtep.Header{DF: vtep.DFUnset, ECN: vtep.ECNRFC3168},
			}},
			{"checksum on", settings{
				args:   []string{"df", "set", on},
				header: vtep.Header{ECN: vtep.ECNRFC3168},
				udp:    underlay.UDPConfig{Checksum: underlay.ChecksumOn},
			}},
			{"checksum off", settings{
				args:   []string{"df", "set", off},
				header: vtep.Header{ECN: vtep.ECNRFC3168},
				udp:    underlay.UDPConfig{Checksum: underlay.ChecksumOff},
			}},
		} {
			t.Run(x.name()+"/"+c.name, func(t *testing.T) {
				p := newPair(t, fam, x.with(c.settings))
				for _, in := range innerFrames() {
					kernel, ours := p.send(in.frame)
					l.compare(t, fam, c.name, in.name, "packets", fmt.Sprint(len(kernel)), fmt.Sprint(len(ours)))
					if len(kernel) != 1 || len(ours) != 1 {
						continue
					}
					k, u := kernel[0].fields(in.frame), ours[0].fields(in.frame)
					for field := range k {
						l.compare(t, fam, c.name, in.name, field, k[field], u[field])
					}
					check.True(t, k["inner frame"] == "unchanged" && k["VXLAN header"] == "0800000000100400",
						"%s: %v", in.name, k)
				}
			})
		}
	}
}

// innerFrames are the frames sent under each setting.
func innerFrames() (fs []struct {
	name  string
	frame []byte
}) {
	add := func(name string, frame []byte) {
		fs = append(fs, struct {
			name  string
			frame []byte
		}{name, frame})
	}
	for _, v6 := range []bool{false, true} {
		for ecn := range uint8(4) {
			in := inner{src: nearInner, dst: farInner, v6: v6, ttl: 33, tos: map[bool]uint8{false: 0xd4, true: 0x28}[v6] | ecn}
			add(fmt.Sprintf("%s %s", in.family(), ecnName[ecn]), in.frame())
		}
	}
	add("IPv4 DF", inner{src: nearInner, dst: farInner, ttl: 255, df: true}.frame())
	add("IPv4 TTL 1", inner{src: nearInner, dst: farInner, ttl: 1}.frame())
	add("ARP", arpRequest(nearInner))
	add("no IP", append(ethernet(farInner, nearInner, 0x88b6), "no IP"...))
	add("tagged", tagged(inner{src: nearInner, dst: farInner, ttl: 33, tos: 0xb8}.frame(), 5))
	add("LLDP", append(ethernet("01:80:c2:00:00:0e", nearInner, 0x88cc), "none"...))
	return fs
}

// A flow keeps one source port of the range, and flows are spread over it.
func TestSourcePort(t *testing.T) {
	const lo, hi = 50000, 50009
	overUnderlays(t, func(t *testing.T, x ourUnderlay) {
		p := newPair(t, x.fam, x.with(settings{
			args: []string{"srcport", fmt.Sprint(lo), fmt.Sprint(hi + 1)},
			udp:  underlay.UDPConfig{SrcPorts: underlay.PortRange{Lo: lo, Hi: hi}},
		}))
		ports := map[string][]uint16{}
		for flow := range uint16(40) {
			in := inner{src: nearInner, dst: farInner, ttl: 9, flow: flow}
			again := in
			again.tos, again.ttl = 0x20, 10
			for i, f := range [][]byte{in.frame(), again.frame()} {
				kernel, ours := p.send(f)
				for name, got := range map[string][]outer{"kernel": kernel, "ours": ours} {
					if len(got) != 1 || got[0].sport < lo || got[0].sport > hi {
						t.Fatalf("%s: %+v", name, got)
					}
					if i == 0 {
						ports[name] = append(ports[name], got[0].sport)
					} else if first := ports[name][flow]; first != got[0].sport {
						t.Errorf("%s: flow %d from port %d, then %d", name, flow, first, got[0].sport)
					}
				}
			}
		}
		for name, ps := range ports {
			slices.Sort(ps)
			// 40 flows over 10 ports: that one of three is never hit is less likely than 1e-17.
			ps = slices.Compact(ps)
			check.True(t, len(ps) >= 4, "%s: 40 flows from ports %v", name, ps)
		}
	})
}

// The devices have the same MTU.
func TestDeviceMTU(t *testing.T) {
	for _, x := range underlays {
		p := newPair(t, x.fam, x.with(settings{}))
		mtu := func(s *side) string { return s.near.Run("cat", "/sys/class/net/"+s.dev+"/mtu") }
		k, u := mtu(p.kernel), mtu(p.ours)
		check.True(t, k == u, "%s: MTU of the kernel's device %s, of ours %s", x.name(), k, u)
	}
}
