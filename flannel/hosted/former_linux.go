package hosted

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/hostnet"
)

// removeFormer deletes the devices that former processes have left when the network had another VNI or backend.
func (s *Shape) removeFormer() {
	list, _ := net.Interfaces()
	for _, i := range list {
		if i.Name == s.cfg.Device || !named(i.Name) || !left(i.Name) {
			continue
		}
		if err := remove(i.Name); err != nil {
			s.cfg.Log.Warn("hosted: a device of a former process stays", "device", i.Name, "err", err)
			continue
		}
		s.cfg.Log.Info("hosted: removed a device of a former process", "device", i.Name)
	}
}

// Forget removes what a Persistent Shape leaves on this host for the next one, which will not come: the device, and those with names of
// flannel's, unless a process has them open, and the routes through other devices to subnets of networks.
func Forget(device string, networks []netip.Prefix) error {
	list, err := net.Interfaces()
	for _, i := range list {
		if (i.Name == device || named(i.Name)) && left(i.Name) {
			err = errors.Join(err, remove(i.Name))
		}
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

// named reports whether a device has a name of flannel's.
func named(device string) bool {
	number, isVNI := strings.CutPrefix(device, "flannel.")
	_, err := strconv.ParseUint(number, 10, 24)
	return device == "flannel0" || isVNI && err == nil
}

// ifPersist is IFF_PERSIST of linux/if_tun.h: the device stays when nobody has it open.
const ifPersist = 0x800

// left reports whether a device is a persistent TAP or TUN that no process has open.
func left(device string) bool {
	read := func(file string) string {
		b, _ := os.ReadFile("/sys/class/net/" + device + "/" + file)
		return strings.TrimSpace(string(b))
	}
	flags, err := strconv.ParseUint(read("tun_flags"), 0, 32)
	return err == nil && flags&ifPersist != 0 && read("carrier") == "0"
}
