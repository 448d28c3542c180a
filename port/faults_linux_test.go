//go:build amd64 || arm64

package port

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fault"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/wrap"
)

// TestConstructorFaults has each system call of each constructor fail.
func TestConstructorFaults(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "", b, "")
	a.IP("tuntap", "add", "lent0", "mode", "tap")
	a.IP("tuntap", "add", "card0", "mode", "tap") // any Ethernet device but a veth
	all := &DeviceConfig{MTU: 1400, Queues: 2}
	for name, open := range map[string]func() (Port, error){
		"TAP":          func() (Port, error) { c := *all; c.MAC = frame.MAC{2, 1, 2, 3, 4, 5}; return port(OpenTAP("t0", &c)) },
		"TUN":          func() (Port, error) { return port(OpenTUN("t1", all)) },
		"in namespace": func() (Port, error) { return port(OpenTAP("t2", &DeviceConfig{Namespace: b.NS})) },
		"from a file": func() (Port, error) {
			fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, fmt.Errorf("port: test: %w", err)
			}
			ifr, _ := unix.NewIfreq("lent0")
			ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
			if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
				unix.Close(fd)
				return nil, fmt.Errorf("port: test: %w", err)
			}
			return port(fromFD(fd, &DeviceConfig{NoOffload: true, MTU: 1400}))
		},
		"veth": func() (Port, error) { c := *all; c.MAC = frame.MAC{2, 1, 2, 3, 4, 6}; return port(OpenVeth("e0", &c)) },
		"interface": func() (Port, error) {
			return port(OpenInterface("eth0", &DeviceConfig{Queues: 2, MTU: 1400, MAC: frame.MAC{2, 1, 2, 3, 4, 7}}))
		},
		"interface in namespace": func() (Port, error) { return port(OpenInterface("eth0", &DeviceConfig{Namespace: b.NS})) },
		"card":                   func() (Port, error) { return port(OpenInterface("card0", nil)) },
		"Packet":                 func() (Port, error) { return port(OpenPacket("eth0", &PacketConfig{Promiscuous: true})) },
		"Packet, queues":         func() (Port, error) { return port(OpenPacket("eth0", &PacketConfig{Queues: 2, NoOffload: true})) },
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			fault.Each(t, a.Enter, func() error {
				p, err := open()
				if err != nil {
					return err
				}
				p.(wrap.Pauser).Pause()
				for _, r := range p.Readers() {
					if err := r.Read(frame.NewBatch(nil)); !errors.Is(err, frame.ErrPaused) {
						p.Close()
						return fmt.Errorf("a pause goes unnoticed: %w", err)
					}
				}
				return p.Close()
			}, func(x fault.Fault, err error) {
				if err == nil { // what is not needed has no error
					return
				}
				failed++
				said, ok := strings.CutPrefix(err.Error(), "port: ")
				if said == `interface "eth0": `+unix.ENODEV.Error() {
					return // nothing else has failed
				}
				if _, rest, named := strings.Cut(said, `": `); named {
					said = rest
				}
				if !ok || strings.HasPrefix(said, x.Errno.Error()) {
					t.Errorf("%v: %q does not say what failed", x, err)
				}
			})
			if failed == 0 {
				t.Error("nothing was an error")
			}
			for _, h := range []*netns.Host{a, b} {
				if out := h.IP("-br", "link"); strings.Contains(out, "e0@") || strings.Contains(out, "vx") {
					t.Errorf("devices are left:\n%s", out)
				}
			}
		})
	}
}

// port makes a Port of what a constructor returns: nil of a nil pointer.
func port[P interface {
	comparable
	Port
}](p P, err error) (Port, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}
