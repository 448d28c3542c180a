package hosted

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/vxswitch/vxswitch/hostnet"
)

// removeFormer deletes the devices that former processes have left when the network had another VNI or backend.
func (s *Shape) removeFormer() {
	list, _ := left(func(name string) bool { return name != s.cfg.Device && isFlannel(name) })
	for _, name := range list {
		if err := remove(name); err != nil {
			s.cfg.Log.Warn("hosted: a device of a former process stays", "device", name, "err", err)
			continue
		}
		s.cfg.Log.Info("hosted: removed a device of a former process", "device", name)
	}
}

// Forget removes what a Persistent Shape leaves on this host for the next one, which will not come: the device, and those with names of
// flannel's, unless a process has them open, and the routes through other devices to subnets of networks.
func Forget(device string, networks []netip.Prefix) error {
	list, err := left(func(name string) bool { return name == device || isFlannel(name) })
	for _, name := range list {
		err = errors.Join(err, remove(name))
	}
	return errors.Join(err, hostnet.Forget("", networks))
}

// remove deletes a device.
func remove(device string) error {
	h, err := hostnet.Open(&hostnet.Config{Device: device})
	if err != nil {
		return err
	}
	return h.Delete()
}

// isFlannel reports whether a device has a name of flannel's.
func isFlannel(device string) bool {
	number, isVNI := strings.CutPrefix(device, "flannel.")
	_, err := strconv.ParseUint(number, 10, 24)
	return device == "flannel0" || isVNI && err == nil
}

// left returns the persistent TAPs and TUNs with certain names that no process has open.
func left(named func(string) bool) (names []string, err error) {
	list, err := net.Interfaces()
	for _, i := range list {
		if named(i.Name) && isPersistent(i.Name) && !isOpen(i.Name) {
			names = append(names, i.Name)
		}
	}
	return names, err
}

// Of linux/if_tun.h and linux/if_link.h.
const (
	ifPersist   = 0x800 // IFF_PERSIST: the device stays when nobody has it open
	iflaCarrier = 33    // IFLA_CARRIER: whether the device has a carrier, 1 byte
)

// isPersistent reports whether a device is a TAP or TUN that outlives its process.
func isPersistent(device string) bool {
	b, err := os.ReadFile("/sys/class/net/" + device + "/tun_flags")
	flags, err2 := strconv.ParseUint(strings.TrimSpace(string(b)), 0, 32)
	return err == nil && err2 == nil && flags&ifPersist != 0
}

// isOpen reports whether a process has a TAP or TUN open, or may have: then it has a carrier. /sys has none for a device that is
// down, and IFF_LOWER_UP is not set, so the kernel is asked by netlink.
func isOpen(device string) bool {
	b, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return true
	}
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return true
	}
	for _, m := range messages {
		attrs, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil { // the end of the list
			continue
		}
		name, carrier := "", byte(1)
		for _, a := range attrs {
			switch a.Attr.Type {
			case syscall.IFLA_IFNAME:
				name = strings.TrimRight(string(a.Value), "\x00")
			case iflaCarrier:
				carrier = a.Value[0]
			}
		}
		if name == device {
			return carrier != 0
		}
	}
	return false
}
