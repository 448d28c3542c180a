//go:build amd64 || arm64

package underlay

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fault"
)

// works checks that an underlay that was opened in spite of a fault can be read and paused, and
// closes it.
func works(u network) error {
	u.Pause()
	for _, r := range u.Readers() {
		if err := r.Read(frame.NewBatch(nil)); !errors.Is(err, frame.ErrPaused) {
			u.Close()
			return errors.New("a pause goes unnoticed: " + err.Error())
		}
	}
	return u.Close()
}

// TestConstructorFaults has each system call of each constructor fail.
func TestConstructorFaults(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		group := netip.MustParseAddr(map[bool]string{false: "239.1.1.1", true: "ff05::1"}[v.ip6])
		other := v.mine(3)
		ports := PortRange{2000, 2001}
		for name, open := range map[string]func() (network, error){
			"UDP": func() (network, error) {
				return ListenUDP(v.at(100, 4789), &UDPConfig{SrcPorts: ports, Queues: 2, Mark: 1, Device: "eth0", MulticastDevice: "eth0", ZeroChecksum6RX: v.ip6})
			},
			"UDP, a group": func() (network, error) {
				u, err := ListenUDP(v.at(100, 4789), &UDPConfig{SrcPorts: ports})
				if err != nil {
					return nil, err
				}
				if err := u.Join(group); err != nil {
					u.Close()
					return nil, err
				}
				return u, nil
			},
			"UDP, another address": func() (network, error) {
				u, err := ListenUDP(v.at(100, 4789), &UDPConfig{SrcPorts: ports})
				if err != nil {
					return nil, err
				}
				if err := u.SetLocal(other.Addr()); err != nil {
					if u.LocalAddr() != v.at(100, 4789) {
						t.Errorf("after %v it is at %v", err, u.LocalAddr())
					}
					return nil, errors.Join(err, works(u))
				}
				return u, nil
			},
			"IP": func() (network, error) {
				return ListenIP(v.at(100, 0).Addr(), &IPConfig{Queues: 2, Device: "eth0"})
			},
			"Packet": func() (network, error) {
				p, err := ListenPacket(v.at(1, 4789), &PacketConfig{Device: "eth0", Queues: 2, MAC: frame.MAC{2, 1, 2, 3, 4, 5}})
				if err != nil {
					return nil, err
				}
				if err = p.Join(group); err == nil {
					err = p.SetLocal(v.at(5, 0).Addr())
				}
				if err != nil {
					return nil, errors.Join(err, works(p))
				}
				return p, nil
			},
		} {
			t.Run(name, func(t *testing.T) {
				if name == "Packet" && !v.ip6 {
					t.Skip("over IPv6 it makes the same system calls and more, and the kernel takes long to close its sockets")
				}
				failed := 0
				fault.Each(t, v.a.Enter, func() error {
					u, err := open()
					if err != nil {
						return err
					}
					return works(u)
				}, func(x fault.Fault, err error) {
					if err == nil { // what is not needed has no error
						return
					}
					said, ok := strings.CutPrefix(err.Error(), "underlay: ")
					said = strings.TrimPrefix(said, `interface "eth0": `)
					if !ok || strings.HasPrefix(said, x.Errno.Error()) {
						t.Errorf("%v: %q does not say what failed", x, err)
					}
					failed++
				})
				if failed == 0 {
					t.Error("nothing was an error")
				}
			})
		}
	})
}
