package underlay

import (
	"cmp"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// A txSet is a set of transmit sockets (Datagram.Set): source ports, and the kind of socket for single datagrams and for
// runs.
//
// The kernel refuses runs (UDP_SEGMENT) on a socket without checksums (EINVAL, Linux 6.18). So if single datagrams have
// none, runs use another kind of socket on the same port.
type txSet struct {
	ports *txPorts
	lone  kind
	run   kind
	plain kind        // added for a datagram without DF
	runs  bool        // the checksum mode allows runs
	split atomic.Bool // the interface has refused runs recently: see giveUp
}

// splitFor is how long runs that the interface refuses are sent as single datagrams before the next attempt.
const splitFor = 10 * time.Second

// giveUp sends runs as single datagrams for a while. The cause, for instance an IPsec policy, may go away.
func (s *txSet) giveUp() {
	if !s.split.Swap(true) {
		time.AfterFunc(splitFor, func() { s.split.Store(false) })
	}
}

// Sockets returns the number of a set of transmit sockets with other settings, for [frame.Datagram].Set. Equal settings
// have equal numbers, and those of the underlay have 0. The sockets open with the first datagram and close with the
// underlay. Sets with the same range share their source ports.
//
// The error names the field of TxConfig. There are at most 32 sets. After Close the error is net.ErrClosed.
func (u *UDP) Sockets(c TxConfig) (uint8, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0, net.ErrClosed
	}
	own := u.sets.Own()
	return u.sets.Number(TxConfig{cmp.Or(c.SrcPorts, own.SrcPorts), cmp.Or(c.Checksum, own.Checksum)}, u.newSet)
}

// newSet returns a set with a configuration.
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

// setGRO enables UDP_GRO, which kernels before Linux 5.0 do not have.
func (s *sock) setGRO() { _ = s.setOption(unix.SOL_UDP, unix.UDP_GRO, true) }

// canSegment reports whether the kernel has UDP_SEGMENT (Linux 4.18). Older kernels would send a run as one long datagram.
func (s *sock) canSegment() bool {
	_, err := s.option(unix.SOL_UDP, unix.UDP_SEGMENT)
	return err == nil
}
