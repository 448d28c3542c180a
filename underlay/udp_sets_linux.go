package underlay

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A txSet is what a Datagram's Set stands for: source ports, and which kind of socket on
// them carries a lone datagram and which a run.
//
// The kernel refuses a run (UDP_SEGMENT) on a socket that leaves checksums out (EINVAL,
// Linux 6.18). So where a lone datagram has none, a run goes through a socket of another
// kind on the same port.
type txSet struct {
	ports *txPorts
	lone  kind
	run   kind
	runs  bool        // the checksum mode allows runs
	split atomic.Bool // the way out refused them: see refused
}

func newTxSet(p *txPorts, c Checksum, is4 bool) *txSet {
	s := &txSet{ports: p, run: withSum, runs: c != ChecksumOff}
	if c == ChecksumOn || c == ChecksumAuto && !is4 {
		s.lone = withSum
	}
	return s
}

// SetOffload turns segmentation by the kernel on or off while the underlay runs: runs
// given to a Sender (UDP_SEGMENT). It starts as UDPConfig.NoOffload says, and stays off
// where the kernel cannot do it. Turned on, it also tries again what the way out has
// refused.
func (u *UDP) SetOffload(on bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.runs.Store(on && u.canSegment)
	for i := range u.sets {
		if s := u.sets[i].Load(); s != nil && on {
			s.split.Store(false)
		}
	}
}

// canSegment reports whether the kernel knows UDP_SEGMENT (Linux 4.18). One that does not
// would send a run as one long datagram.
func (s *sock) canSegment() (ok bool) {
	_ = s.raw.Control(func(fd uintptr) {
		_, err := unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT)
		ok = err == nil
	})
	return ok
}
