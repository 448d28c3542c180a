//go:build amd64 || arm64

package underlay

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// TestConstructorFaults has each system call of each constructor fail.
func TestConstructorFaults(t *testing.T) {
	underlaytest.BothFamilies(t, func(t *testing.T, v *underlaytest.Veth) {
		group := v.Group(1)
		ports := PortRange{2000, 2001}
		for name, open := range map[string]func() (underlaytest.Underlay, error){
			"UDP": func() (underlaytest.Underlay, error) {
				return ListenUDP(v.At(100, 4789), &UDPConfig{SrcPorts: ports, Queues: 2, Mark: 1, Device: "eth0", MulticastDevice: "eth0", ZeroChecksum6RX: v.IP6})
			},
			"UDP, a group": func() (underlaytest.Underlay, error) {
				u, err := ListenUDP(v.At(100, 4789), &UDPConfig{SrcPorts: ports})
				if err != nil {
					return nil, err
				}
				if err := u.Join(group); err != nil {
					u.Close()
					return nil, err
				}
				return u, nil
			},
			"IP": func() (underlaytest.Underlay, error) {
				return ListenIP(v.At(100, 0).Addr(), &IPConfig{Queues: 2, Device: "eth0"})
			},
		} {
			t.Run(name, func(t *testing.T) { underlaytest.Faults(t, v, "underlay", open) })
		}
	})
}
