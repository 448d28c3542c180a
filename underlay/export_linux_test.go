package underlay

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// Refusal is a kernel that refuses runs.
type Refusal struct {
	why   atomic.Int32  // errno, 0 for none
	Times atomic.Uint64 // that a run was refused
}

// RefuseRuns puts a Refusal, of nothing yet, between the underlay and the kernel. It is
// called before anything is sent.
func (u *UDP) RefuseRuns() *Refusal {
	r := new(Refusal)
	u.sendmmsg = r.sendmmsg
	return r
}

// Set has runs refused for a reason, or taken again with 0.
func (r *Refusal) Set(why unix.Errno) { r.why.Store(int32(why)) }

// sendmmsg is sys.Sendmmsg of a kernel that refuses runs: it stops at the first, and says
// why only when nothing came before.
func (r *Refusal) sendmmsg(fd uintptr, msgs []sys.Mmsghdr, flags int) (int, unix.Errno) {
	if why := unix.Errno(r.why.Load()); why != 0 {
		for i := range msgs {
			if !isRun(&msgs[i].Hdr) {
				continue
			}
			if i == 0 {
				r.Times.Add(1)
				return 0, why
			}
			msgs = msgs[:i]
			break
		}
	}
	return sys.Sendmmsg(fd, msgs, flags)
}

// isRun reports whether a message carries UDP_SEGMENT.
func isRun(h *unix.Msghdr) bool {
	if h.Control == nil {
		return false
	}
	for b := unsafe.Slice(h.Control, int(h.Controllen)); ; {
		level, typ, _, rest, ok := sys.NextCmsg(b)
		if !ok {
			return false
		}
		if level == unix.SOL_UDP && typ == unix.UDP_SEGMENT {
			return true
		}
		b = rest
	}
}

// Split reports whether the underlay has given up sending runs.
// Unsplit has runs tried again before splitFor is over.
func (u *UDP) Unsplit() { u.sets.Get(0).split.Store(false) }

func (u *UDP) Split() bool { return u.sets.Get(0).split.Load() }
