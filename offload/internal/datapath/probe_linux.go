package datapath

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// cmdGlobal is MEMBARRIER_CMD_GLOBAL of membarrier(2).
const cmdGlobal = 1

// Grace returns when no program is still at work with what it has read before the call.
func Grace() error { return membarrier() }

func membarrier() error {
	// An RCU grace period: sys_membarrier calls synchronize_rcu (Linux 6.18). On a single processor it does nothing, where
	// no program can be interrupted by the caller.
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, cmdGlobal, 0, 0); errno != 0 {
		return fmt.Errorf("datapath: membarrier: %w", errno)
	}
	return nil
}

// probeGrace returns why Grace would not work. The kernel has it, except with processors without a timer tick
// (nohz_full).
func probeGrace() error {
	if err := membarrier(); err != nil {
		return fmt.Errorf("%w; the kernel must allow MEMBARRIER_CMD_GLOBAL, so no processor may be without timer tick (nohz_full)", err)
	}
	return nil
}

// canDecapL4 reports whether bpf_skb_adjust_room has BPF_F_ADJ_ROOM_DECAP_L4_UDP: then a UDP superframe loses the
// marks of the tunnel with its headers. Linux 6.18 has not.
func canDecapL4(spec *ebpf.CollectionSpec) (bool, error) {
	probe := &ebpf.CollectionSpec{
		Programs:  map[string]*ebpf.ProgramSpec{"probe_decap_l4": spec.Programs["probe_decap_l4"].Copy()},
		ByteOrder: spec.ByteOrder,
	}
	c, err := ebpf.NewCollection(probe)
	if err != nil {
		return false, refused(err)
	}
	defer c.Close()
	ret, err := c.Programs["probe_decap_l4"].Run(&ebpf.RunOptions{Data: probePacket})
	if err != nil {
		return false, fmt.Errorf("datapath: probing bpf_skb_adjust_room: %w", err)
	}
	return ret == 0, nil
}

// probePacket is an Ethernet header, and an IPv4 packet with room for a tunnel inside.
var probePacket = append([]byte{12: 8, 13: 0, 14: 0x45, 17: 86, 22: 64, 23: 17}, make([]byte, 76)...)

// refused explains an error of loading in one line.
func refused(err error) error {
	var ve *ebpf.VerifierError
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("datapath: loading: %w; the process must have CAP_BPF and CAP_NET_ADMIN", errors.Unwrap(err))
	case errors.As(err, &ve):
		line := ""
		if len(ve.Log) > 0 {
			line = ": " + ve.Log[len(ve.Log)-1]
		}
		return fmt.Errorf("datapath: loading: %w%s", ve.Cause, line)
	}
	return fmt.Errorf("datapath: loading: %s", strings.ReplaceAll(err.Error(), "\n", " "))
}
