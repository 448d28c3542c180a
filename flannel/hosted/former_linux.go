package hosted

import (
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/hostnet"
)

// removeFormer deletes the devices that former processes have left when the network had another VNI or backend.
func (s *Shape) removeFormer() {
	list, _ := net.Interfaces()
	for _, i := range list {
		if i.Name == s.cfg.Device || !left(i.Name) {
			continue
		}
		h, err := hostnet.Open(&hostnet.Config{Device: i.Name})
		if err == nil {
			err = h.Delete()
		}
		if err != nil {
			s.cfg.Log.Warn("hosted: a device of a former process stays", "device", i.Name, "err", err)
			continue
		}
		s.cfg.Log.Info("hosted: removed a device of a former process", "device", i.Name)
	}
}

// ifPersist is IFF_PERSIST of linux/if_tun.h: the device stays when nobody has it open.
const ifPersist = 0x800

// left reports whether a device has a name of flannel's, is a persistent TAP or TUN, and no process has it open.
func left(device string) bool {
	read := func(file string) string {
		b, _ := os.ReadFile("/sys/class/net/" + device + "/" + file)
		return strings.TrimSpace(string(b))
	}
	number, isVNI := strings.CutPrefix(device, "flannel.")
	if _, err := strconv.ParseUint(number, 10, 24); device != "flannel0" && (!isVNI || err != nil) {
		return false
	}
	flags, err := strconv.ParseUint(read("tun_flags"), 0, 32)
	return err == nil && flags&ifPersist != 0 && read("carrier") == "0"
}
