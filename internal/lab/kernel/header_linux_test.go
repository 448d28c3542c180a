package kernel

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Rows of the documentation, about group policy.
const (
	gbpReserved  = "reserved bits with group policy"
	gbpDontLearn = "D of group policy"
)

// reserved39 is the bits that VXLAN has no use for.
const reserved39 = 0xf7ffffff000000ff

// withBits returns a frame behind a header of the test's VNI, with other bits set too.
func withBits(bits uint64, in []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, 1<<59|vni<<8|bits), in...)
}

// bitName names a bit of the header.
func bitName(i int) string { return fmt.Sprintf("octet %d bit %#02x", 7-i/8, 1<<(i%8)) }

// Strict is what the kernel does: each of the 39 reserved bits drops the packet, after the
// VNI was looked up and before the length of the inner frame.
func TestReceiveStrict(t *testing.T) {
	l := newLedger(t, nil)
	const header = "rx_errors rx_frame_errors"
	inFamilies(t, func(t *testing.T, fam family) {
		p := newPair(t, fam, settings{reserved: vtep.ReservedStrict})
		good := inner{src: farInner, dst: nearInner, ttl: 33}.frame()
		try := func(name string, payload []byte, want, kernel, ours string) {
			t.Helper()
			count := p.count()
			k, u := p.receive(fam.packet(outerIP{}, payload))
			l.compare(t, fam, "", name, "outcome", outcome(good, k), outcome(good, u))
			got := outcome(good, u)
			check.True(t, got == want, "%s: %s, want %s", name, got, want)
			count.want(t, name, kernel, ours)
		}
		n := 0
		for i := range 64 {
			if bit := uint64(1) << i; bit&reserved39 != 0 {
				try(bitName(i), withBits(bit, good), "dropped", header, "reserved-bits")
				n++
			}
		}
		check.True(t, n == 39, "%d bits", n)
		try("none", withBits(0, good), "delivered unchanged", "", "")
		try("all of them", withBits(reserved39, good), "dropped", header, "reserved-bits")
		try("and a short inner frame", withBits(1, good[:13]), "dropped", header, "reserved-bits")
		try("and an unknown VNI", withBits(0xff<<56|1<<8, good), "dropped", "", "unknown-vni")
	})
}

// gbpDifferences are those of VTEPs that have group policy.
var gbpDifferences = []difference{
	{field: "outcome", packets: []string{"octet 1 bit 0x80", "octet 1 bit 0x20", "octet 1 bit 0x10", "octet 1 bit 0x04", "octet 1 bit 0x02", "octet 1 bit 0x01"},
		kernel: "delivered unchanged", ours: "dropped", rule: gbpReserved},
	{field: "learned", packets: []string{"D", "D and A", "all of it"}, kernel: "true", ours: "false", rule: gbpDontLearn},
}

// nft gives a device of the kernel's side a set of the marks that come out of it, and puts a
// mark on what goes in.
const nft = `table netdev gbp {
	set seen { type mark; flags dynamic; size 64; counter; }
	chain in { type filter hook ingress device vx0 priority 0; ether type ip add @seen { meta mark }; }
	chain out { type filter hook egress device vx0 priority 0; meta mark set %#x; }
}`

func (s *side) nft(t *testing.T, text string) {
	t.Helper()
	s.near.Try(t.Context(), "nft", "delete", "table", "netdev", "gbp")
	s.near.Run("nft", text)
}

// marks returns the marks of IPv4 packets that have come out of the device.
func (s *side) marks() (all []string) {
	for _, m := range regexp.MustCompile(`(0x[0-9a-f]{8}) counter packets [1-9]`).FindAllStringSubmatch(s.near.Run("nft", "list", "set", "netdev", "gbp", "seen"), -1) {
		n, _ := strconv.ParseUint(m[1], 0, 32)
		all = append(all, fmt.Sprintf("%#x", n))
	}
	return all
}

// markOf is a mark as Linux has it in the packet's (struct vxlan_metadata).
func markOf(g frame.GBP) uint32 {
	m := uint32(g.ID)
	if g.DontLearn {
		m |= 1 << 22
	}
	if g.Applied {
		m |= 1 << 19
	}
	return m
}

// gbpStage notes the marks of IPv4 frames from the tunnel, and marks others.
type gbpStage struct{ seen, mark atomic.Uint64 }

func (s *gbpStage) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	switch {
	case !f.Tunnel:
		m := s.mark.Load()
		f.GBP = frame.GBP{ID: uint16(m), DontLearn: m&(1<<22) != 0, Applied: m&(1<<19) != 0}
	case f.Bytes()[12] == 8 && f.Bytes()[13] == 0:
		s.seen.Store(1<<32 | uint64(markOf(f.GBP)))
	}
	return frame.Continue
}

// Marks come in: the kernel's is that of the packet, ours that of the frame. And each bit of
// the header by itself, where ours is strict.
func TestReceiveGBP(t *testing.T) {
	l := newLedger(t, gbpDifferences)
	inFamilies(t, func(t *testing.T, fam family) {
		p := newPair(t, fam, settings{args: []string{"gbp"}, gbp: true, reserved: vtep.ReservedStrict})
		stage := new(gbpStage)
		vsi := p.Switch().VSIs()[0]
		check.OK(t, vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Ingress: stage}}))
		in := inner{src: farInner, dst: nearInner, ttl: 33}.frame()
		for i := range 64 {
			if bit := uint64(1) << i; bit&reserved39 != 0 {
				kernel, ours := p.receive(fam.packet(outerIP{}, withBits(bit, in)))
				l.compare(t, fam, "", bitName(i), "outcome", outcome(in, kernel), outcome(in, ours))
			}
		}
		for i, c := range []struct {
			name string
			bits uint64
			want frame.GBP
		}{
			{"no mark", 0, frame.GBP{}},
			{"a mark", 1<<63 | 0x1234<<32, frame.GBP{ID: 0x1234}},
			{"the largest", 1<<63 | 0xffff<<32, frame.GBP{ID: 0xffff}},
			{"G alone", 1 << 63, frame.GBP{}},
			{"no G", 0x1234<<32 | 1<<54 | 1<<51, frame.GBP{}},
			{"A", 1<<63 | 1<<51 | 5<<32, frame.GBP{ID: 5, Applied: true}},
			{"D", 1<<63 | 1<<54 | 5<<32, frame.GBP{ID: 5, DontLearn: true}},
			{"D and A", 1<<63 | 1<<54 | 1<<51, frame.GBP{DontLearn: true, Applied: true}},
			{"all of it", 1<<63 | 1<<54 | 1<<51 | 0xffff<<32, frame.GBP{ID: 0xffff, DontLearn: true, Applied: true}},
		} {
			src := fmt.Sprintf("02:00:00:00:99:%02x", i)
			in := inner{src: src, dst: nearInner, ttl: 33}.frame()
			p.kernel.nft(t, fmt.Sprintf(nft, 0))
			stage.seen.Store(0)
			kernel, ours := p.receive(fam.packet(outerIP{}, withBits(c.bits, in)))
			l.compare(t, fam, "", c.name, "outcome", outcome(in, kernel), outcome(in, ours))
			got := outcome(in, ours)
			check.True(t, got == "delivered unchanged", "%s: %s", c.name, got)
			got = fmt.Sprintf("%#x", uint32(stage.seen.Load()))
			l.compare(t, fam, "", c.name, "mark", strings.Join(p.kernel.marks(), " "), got)
			want := fmt.Sprintf("%#x", markOf(c.want))
			check.True(t, got == want && stage.seen.Load() != 0, "%s: mark %s, want %s", c.name, got, want)
			mac, _ := frame.ParseMAC(src)
			_, ok := vsi.FDB().Lookup(mac)
			l.compare(t, fam, "", c.name, "learned", fmt.Sprint(len(p.kernel.near.Peers("vx0", src)) > 0), fmt.Sprint(ok))
		}
	})
}

// Marks go out: the header is the same, G only with a mark; without the setting there is none.
func TestSendGBP(t *testing.T) {
	l := newLedger(t, nil)
	for _, fam := range families {
		for _, gbp := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", fam.name, gbp), func(t *testing.T) {
				s := settings{gbp: gbp}
				if gbp {
					s.args = []string{"gbp"}
				}
				p := newPair(t, fam, s)
				stage := new(gbpStage)
				vsi := p.Switch().VSIs()[0]
				check.OK(t, vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Ingress: stage}}))
				in := inner{src: nearInner, dst: farInner, ttl: 33}.frame()
				try := func(name string, g frame.GBP, want string) {
					t.Helper()
					p.kernel.nft(t, fmt.Sprintf(nft, markOf(g)))
					kernel, ours := p.send(in)
					if len(kernel) != 1 || len(ours) != 1 {
						t.Fatalf("%s: %d and %d packets", name, len(kernel), len(ours))
					}
					got := fmt.Sprintf("%x", ours[0].header)
					l.compare(t, fam, "", name, "header", fmt.Sprintf("%x", kernel[0].header), got)
					if !gbp {
						want = "0800000000100400"
					}
					check.True(t, got == want, "%s: header %s, want %s", name, got, want)
				}
				for _, c := range []struct {
					name, want string
					g          frame.GBP
				}{
					{"no mark", "0800000000100400", frame.GBP{}},
					{"a mark", "8800123400100400", frame.GBP{ID: 0x1234}},
					{"the largest", "8800ffff00100400", frame.GBP{ID: 0xffff}},
					{"A alone", "8808000000100400", frame.GBP{Applied: true}},
					{"D", "8840000700100400", frame.GBP{ID: 7, DontLearn: true}},
					{"all of it", "8848ffff00100400", frame.GBP{ID: 0xffff, DontLearn: true, Applied: true}},
				} {
					stage.mark.Store(uint64(markOf(c.g)))
					try(c.name, c.g, c.want)
				}
				stage.mark.Store(0)
				check.OK(t, vsi.Configure(vswitch.VSIConfig{}))
				for _, a := range vsi.Attachments() {
					if p.Switch().Name(a.Dest(0)) == "tap0" {
						check.OK(t, a.Configure(vswitch.AttachConfig{GBP: 0x4321}))
					}
				}
				try("the group of the port", frame.GBP{ID: 0x4321}, "8800432100100400")
			})
		}
	}
}
