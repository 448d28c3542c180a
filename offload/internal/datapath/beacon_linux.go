package datapath

import (
	"fmt"
	"io"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// The addresses of beacons: of the first, and of those that are bound to a device.
var addresses = [2][4]byte{{127, 0, 0, 1}, {127, 0, 0, 2}}

// Beacon has frames carried at a device that is in a VRF, where the beacon of Load is not found. The device is in the network
// namespace of the calling thread. Close of the result ends it.
func (d *Datapath) Beacon(ifindex int) (io.Closer, error) {
	f, err := openBeacon(addresses[1], d.port, ifindex)
	if err != nil {
		return nil, err
	}
	if err := d.light(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openBeacon opens a socket that the programs look for: port 0 is any, and ifindex the device that it is bound to, 0 for none. It
// keeps next to nothing of what is sent to it.
func openBeacon(addr [4]byte, port uint16, ifindex int) (f *os.File, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("datapath: beacon: socket: %w", err)
	}
	for _, o := range [...]struct{ level, name, value int }{
		{unix.SOL_IP, unix.IP_FREEBIND, 1}, // also while the loopback device is down
		{unix.SOL_SOCKET, unix.SO_RCVBUF, 0},
		{unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, ifindex},
	} {
		if err == nil {
			err = unix.SetsockoptInt(fd, o.level, o.name, o.value)
		}
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: addr})
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("datapath: beacon at %v: %w", netip.AddrPortFrom(netip.AddrFrom4(addr), port), err)
	}
	return os.NewFile(uintptr(fd), "beacon"), nil
}

// portOf returns the port that a socket is bound to.
func portOf(f *os.File) (uint16, error) {
	a, err := unix.Getsockname(int(f.Fd()))
	if err != nil {
		return 0, fmt.Errorf("datapath: beacon: %w", err)
	}
	return uint16(a.(*unix.SockaddrInet4).Port), nil
}

// light gives a socket the value that makes it a beacon.
func (d *Datapath) light(f *os.File) error {
	if err := d.objects.Beacons.Put(int32(f.Fd()), uint32(1)); err != nil {
		return fmt.Errorf("datapath: table %v: %w", d.objects.Beacons, err)
	}
	return nil
}
