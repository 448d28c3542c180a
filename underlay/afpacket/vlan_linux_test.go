package afpacket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay"
)

// In a VLAN, datagrams and runs go both ways and take the whole MTU, whether the kernel has the tag in the frame or beside it (veth's
// tx-vlan-offload). Next hops are found there, and all that is on the wire has the tag.
func TestVLAN(t *testing.T) {
	ours, theirs := frame.MAC{2, 1, 2, 3, 4, 5}, frame.MAC{2, 1, 2, 3, 4, 6}
	bothFamilies(t, func(t *testing.T, v *veth) {
		for _, offload := range []string{"on", "off"} {
			v.A.Run("ethtool", "-K", "eth0", "txvlan", offload)
			v.B.Run("ethtool", "-K", "eth0", "txvlan", offload)
			for _, cfg := range []Config{{}, {NoOffload: true}, {Checksum: underlay.ChecksumOn}} {
				t.Run(fmt.Sprintf("txvlan %s, NoOffload %v, checksums %v", offload, cfg.NoOffload, cfg.Checksum), func(t *testing.T) {
					cfg.VLAN, cfg.MAC = 7, ours
					a, b := v.packet(&cfg), v.packetAt(v.B, 3, &Config{VLAN: 7, MAC: theirs})
					defer a.Close()
					defer b.Close()
					seen := v.B.Capture("eth0", "")
					full := strings.Repeat("f", 1500-a.ipAndUDP())
					for _, way := range []struct {
						from, to *Underlay
						end      frame.Endpoint
					}{{a, b, v.End(3)}, {b, a, v.End(1)}} {
						send(t, way.from, to("waits for the next hop", 1, way.end))
						receive(t, way.to, 1)
						run, want := runOf(2503, 1000, 3, 7, way.end)
						ds := []frame.Datagram{to(full, 1, way.end), run, to(full+"+", 1, way.end)}
						send(t, way.from, ds...)
						if got := payloads(receive(t, way.to, 1+len(want))); !slices.Equal(got, append([]string{full}, want...)) || ds[2].Drop != frame.TooBig {
							t.Errorf("%d datagrams arrived changed; one too long: %v", len(got), ds[2].Drop)
						}
					}
					n := 0
					for _, x := range seen.Stop() {
						if mac := frame.MAC(x.Data[6:12]); mac != ours && mac != theirs {
							continue // of the hosts
						}
						if n++; binary.BigEndian.Uint16(x.Data[12:]) != 0x8100 || binary.BigEndian.Uint16(x.Data[14:]) != 7 {
							t.Errorf("without the tag: %x", x.Data[:34])
						}
					}
					if n < 10 {
						t.Errorf("%d packets were seen", n)
					}
				})
			}
		}
	})
}

// ipAndUDP returns the length of the headers that count towards the MTU.
func (p *Underlay) ipAndUDP() int { return p.Sender(0).(*sender).ipLen() + p.udp }

// Each underlay receives from its own VLAN only, as do those without one; none takes a service tag.
func TestVLANsApart(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		tagged := func(typ, id uint16, payload string) []byte {
			b := frameOf(v.IP6, []byte(payload))
			return slices.Insert(b, 12, byte(typ>>8), byte(typ), byte(id>>8), byte(id))
		}
		v.A.SetMAC("eth0", testMAC.String())
		for _, c := range []struct {
			vlan uint16
			want []string
		}{{0, []string{"none", "priority", "end"}}, {7, []string{"seven", "seven, priority 5", "end"}}, {8, []string{"eight", "end"}}} {
			p := v.packet(&Config{VLAN: c.vlan})
			if got := p.solicited != nil; got != (v.IP6 && c.vlan == 0) { // the report would have no tag
				t.Errorf("VLAN %d: the kernel reports the group of neighbours: %v", c.vlan, got)
			}
			end := frameOf(v.IP6, []byte("end"))
			if c.vlan != 0 {
				end = tagged(0x8100, c.vlan, "end")
			}
			v.B.Inject("eth0", frameOf(v.IP6, []byte("none")), tagged(0x8100, 0xa000, "priority"), tagged(0x8100, 7, "seven"),
				tagged(0x8100, 0xa007, "seven, priority 5"), tagged(0x8100, 8, "eight"), tagged(0x88a8, 7, "service"), tagged(0x88a8, 8, "service"), end)
			if got := payloads(receive(t, p, len(c.want))); !slices.Equal(got, c.want) {
				t.Errorf("VLAN %d: %q, want %q", c.vlan, got, c.want)
			}
			p.Close()
		}
	})
}

// A VLAN has an ID, no groups, and no gateway to share an address with.
func TestVLANSettings(t *testing.T) {
	v := newVeth(t, false)
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Device: "eth0", VLAN: 4095}, "afpacket: Config.VLAN: 4095: must be 1 to 4094, or 0 for none"},
		{Config{Device: "eth0", VLAN: 7, Shared: true}, "afpacket: Config.Shared: an address with a VLAN cannot be shared"},
	} {
		if err := c.cfg.Check(v.At(1, 4789)); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	p := netns.Open(t, v.A, func() (*Underlay, error) { return Listen(v.At(1, 4789), &Config{Device: "eth0", VLAN: 4094}) })
	if err := p.Join(v.Group(1)); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
