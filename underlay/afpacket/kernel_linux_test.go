package afpacket

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/underlay"
)

// kernelTakes is what the kernel takes and we do not (Linux 6.18).
var kernelTakes = map[string]bool{
	"UDP behind destination options": true, // tunnels send no extension headers
	"broadcast":                      true, // a datagram to one host in a frame to all (RFC 1122, section 3.3.6, has it dropped)
	"from an IPv4 address":           true, // as an IPv4-mapped source on a wire; every peer is known by its address
	"UDP length 0":                   true, // over IPv6, as a jumbogram, though no option says so (RFC 2675, section 4)
}

// besideKernel gives both hosts the MACs of the cases, and host a the address of the underlay too.
func (v *veth) besideKernel() {
	v.A.SetMAC("eth0", testMAC.String())
	v.B.SetMAC("eth0", peerMAC.String())
	v.Mine(1)
	v.A.Ready()
}

// The kernel's UDP socket and the parser get the same frames, and take the same datagrams.
func TestAgainstKernel(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		v.besideKernel()
		p := v.packet(nil) // of an address that the host has too
		k := v.udp(v.A, 1, &underlay.UDPConfig{MaxDatagram: 9000})
		for _, c := range parseCases(v.IP6) {
			if c.vnet != (gso.Virtio{}) || len(c.b) < 14 {
				continue // nothing of this is on a wire
			}
			mark := frameOf(v.IP6, []byte("mark "+c.name))
			v.B.Inject("eth0", c.b, mark)
			take := func(u network) (got []string) {
				for len(got) == 0 || got[len(got)-1] != "mark "+c.name {
					for _, r := range read(t, u) {
						if r.Drop == 0 {
							got = append(got, r.Payload)
						}
					}
				}
				return got
			}
			ours, theirs := take(p), take(k)
			if kernelTakes[c.name] && len(ours) < len(theirs) {
				continue
			}
			if !slices.Equal(ours, theirs) {
				t.Errorf("%s: the kernel takes %.60q, ours %.60q", c.name, theirs, ours)
			}
			if taken := len(ours) > 1; taken != (c.drop == 0 && !c.alien) {
				t.Errorf("%s: taken %v, want %v", c.name, taken, c.drop)
			}
		}
	})
}

// So with groups, which both are in.
func TestGroupsAgainstKernel(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		v.besideKernel()
		group := netip.AddrFrom4(group4)
		if v.IP6 {
			group = netip.AddrFrom16(group6)
		}
		var ears []*underlaytest.Ear
		for _, u := range []interface {
			underlaytest.Underlay
			Join(netip.Addr) error
		}{v.packet(&Config{Queues: 2}), v.udp(v.A, 1, nil)} {
			must(t, u.Join(group))
			e := underlaytest.Listen(u)
			defer func() { u.Close(); e.Wait() }()
			ears = append(ears, e)
		}
		cs := groupCases(v.IP6)
		for _, c := range append(cs, cs[0]) {
			v.B.Inject("eth0", c.b)
		}
		for i, e := range ears {
			fake.Until(t, "the last", func() bool { return e.Count("to the group") == 2 })
			for _, c := range cs[1:] {
				want := 0
				if c.drop == 0 && !c.alien {
					want = 1
				}
				if got := e.Count(c.name); got != want {
					t.Errorf("%s: %s: %d, want %d", []string{"ours", "the kernel"}[i], c.name, got, want)
				}
			}
		}
	})
}
