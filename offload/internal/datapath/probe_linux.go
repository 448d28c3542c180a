package datapath

import (
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Commands of membarrier(2).
const (
	cmdQuery  = 0 // which others there are, a bit each
	cmdGlobal = 1
)

// hasGrace returns an error if the kernel refuses Grace. It does not wait as Grace does.
func hasGrace() error {
	has, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, cmdQuery, 0, 0)
	if errno == 0 && has&cmdGlobal == 0 {
		errno = unix.EINVAL
	}
	if errno != 0 {
		return fmt.Errorf("datapath: membarrier: %w; the kernel must allow MEMBARRIER_CMD_GLOBAL, so no processor may be without timer tick (nohz_full)", errno)
	}
	return nil
}

// Grace returns when no program is still at work with what it has read before the call. The kernel refuses it with processors
// without a timer tick (nohz_full).
func Grace() error {
	// An RCU grace period: sys_membarrier calls synchronize_rcu (Linux 6.18). On a single processor it does nothing, where
	// no program can be interrupted by the caller.
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, cmdGlobal, 0, 0); errno != 0 {
		return fmt.Errorf("datapath: membarrier: %w", errno)
	}
	return nil
}

// probe finds out what the kernel can do: attach programs by tcx links, without which nothing works, and
// BPF_F_ADJ_ROOM_DECAP_L4_UDP in bpf_skb_adjust_room. With that a UDP superframe loses the marks of the tunnel
// together with its headers. Linux 6.18 does not have it.
func probe(spec *ebpf.CollectionSpec) (decapL4 bool, err error) {
	const name = "probe_decap_l4"
	one := spec.Programs[name].Copy()
	one.AttachType = ebpf.AttachNone // which older kernels know
	c, err := ebpf.NewCollection(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{name: one}, ByteOrder: spec.ByteOrder})
	if err != nil {
		return false, refused(err)
	}
	defer c.Close()
	p := c.Programs[name]
	if _, err := link.AttachTCX(link.TCXOptions{Interface: math.MaxInt32, Program: p, Attach: ebpf.AttachTCXIngress}); errors.Is(err, ebpf.ErrNotSupported) {
		return false, errors.New("datapath: the kernel has no tcx links; it must be Linux 6.6 or later") // else there is no such device
	}
	ret, err := p.Run(&ebpf.RunOptions{Data: probePacket})
	if err != nil {
		return false, fmt.Errorf("datapath: probing bpf_skb_adjust_room: %w", err)
	}
	return ret == 0, nil
}

// probePacket is an Ethernet header, and an IPv4 packet with room for a tunnel inside.
var probePacket = append([]byte{12: 8, 13: 0, 14: 0x45, 17: 86, 22: 64, 23: 17}, make([]byte, 76)...)

// refused explains an error of loading.
func refused(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("datapath: loading: %w; the process must have CAP_BPF and CAP_NET_ADMIN", unix.EPERM)
	}
	return fmt.Errorf("datapath: loading: %w", err)
}
