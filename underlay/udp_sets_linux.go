package underlay

import (
	"cmp"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
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
	plain kind        // added for a datagram without DF
	runs  bool        // the checksum mode allows runs
	split atomic.Bool // the way out has refused them a moment ago: see giveUp
}

// splitFor is for how long runs that the way out cannot carry are sent as single datagrams
// before one is tried again.
const splitFor = 10 * time.Second

// giveUp has runs sent as single datagrams for a while. What refused them, an IPsec policy
// say, may go away.
func (s *txSet) giveUp() {
	if !s.split.Swap(true) {
		time.AfterFunc(splitFor, func() { s.split.Store(false) })
	}
}

// Sockets returns the number of a set of transmit sockets with other settings, for
// [frame.Datagram].Set; equal settings give equal numbers, and those of the underlay give
// 0. Its sockets are opened when something is sent through them, and closed by Close. Sets
// with one range have the same source ports.
//
// The error names the field of TxConfig; there are at most 32 sets. After Close it is
// net.ErrClosed.
func (u *UDP) Sockets(c TxConfig) (uint8, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0, net.ErrClosed
	}
	own := u.sets.Own()
	return u.sets.Number(TxConfig{cmp.Or(c.SrcPorts, own.SrcPorts), cmp.Or(c.Checksum, own.Checksum)}, u.newSet)
}

// newSet makes a set of its configuration.
func (u *UDP) newSet(c TxConfig) *txSet {
	s := &txSet{run: withSum, plain: mayFragment, runs: c.Checksum != ChecksumOff}
	if c.Checksum == ChecksumOn || c.Checksum == ChecksumAuto && !u.is4 {
		s.lone = withSum
	}
	for _, p := range u.ranges {
		if p.r == datagrams.Ports(c.SrcPorts) {
			s.ports = p
		}
	}
	if s.ports == nil {
		s.ports = &txPorts{r: datagrams.Ports(c.SrcPorts)}
		u.ranges = append(u.ranges, s.ports)
	}
	return s
}

// setGRO turns UDP_GRO on. A kernel before Linux 5.0 has none.
func (s *sock) setGRO() { _ = s.setOption(unix.SOL_UDP, unix.UDP_GRO, true) }

// canSegment reports whether the kernel knows UDP_SEGMENT (Linux 4.18). One that does not
// would send a run as one long datagram.
func (s *sock) canSegment() bool {
	_, err := s.option(unix.SOL_UDP, unix.UDP_SEGMENT)
	return err == nil
}
