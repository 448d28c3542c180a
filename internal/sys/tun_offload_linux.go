package sys

import "golang.org/x/sys/unix"

// Offloads the kernel may leave to who reads a queue, from all to none. USO is
// known since Linux 6.2.
var tunOffloads = [...]struct {
	flags int
	uso   bool
}{
	{unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6, true},
	{unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN, false},
	{unix.TUN_F_CSUM, false},
	{0, false},
}

// SetOffload lets the kernel send superframes and unfinished checksums into the
// device, as many kinds as it knows, or with on false none. It reports whether UDP
// superframes are among them: a kernel that sends them takes them too. It is a
// setting of the device, not of the queue, and a persistent device keeps it.
func (t *Tun) SetOffload(on bool) (uso bool, err error) {
	steps := tunOffloads[:]
	if !on {
		steps = steps[len(steps)-1:]
	}
	for _, s := range steps {
		if err = Control(t.Conn, func(fd int) error { return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, s.flags) }); err == nil {
			return s.uso, nil
		}
	}
	return false, err
}
