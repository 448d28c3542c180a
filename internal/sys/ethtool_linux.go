package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Features of a device that [Links.Feature] turns on and off: linux/ethtool.h.
const (
	FeatureGRO = unix.ETHTOOL_SGRO // it joins the segments that it receives
	FeatureTSO = unix.ETHTOOL_STSO // it takes superframes of TCP
)

// Feature turns a feature of a device on or off.
func (l *Links) Feature(index int, feature uint32, on bool) error {
	dev, err := l.ByIndex(index, Here)
	if err != nil {
		return err
	}
	value := struct{ cmd, data uint32 }{cmd: feature} // struct ethtool_value
	if on {
		value.data = 1
	}
	var req struct { // struct ifreq with ifr_data
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte
	}
	copy(req.name[:], dev.Name)
	req.data = unsafe.Pointer(&value)
	return Control(l.conn, func(fd int) error {
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); e != 0 {
			return e
		}
		return nil
	})
}
